package httpapi

import (
	"encoding/json"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// maxFaults is how many faults of a request one answer names.
const maxFaults = 20

// validate holds a decoded body to its schema and returns all faults at once, as one error. A body of the wrong shape is 400, one with a
// wrong value 422.
func validate(schema *openapi3.Schema, body any) error {
	err := schema.VisitJSON(body, openapi3.MultiErrors())
	if err == nil {
		return nil
	}
	faults := faultsOf(nil, "", err)
	faults = faults[:min(len(faults), maxFaults)]
	for _, f := range faults {
		if shape, ok := shapes[f.Code]; ok {
			return &requestError{code: shape, detail: "the body does not have the documented shape", faults: faults}
		}
	}
	return &requestError{code: "invalid", detail: "the body breaks the rules named in errors", faults: faults}
}

// shapes are the keywords of a schema that are about a body's shape, and the codes of bodies that break them.
var shapes = map[string]string{"type": "wrong_type", "nullable": "wrong_type", "properties": "unknown_field"}

func faultsOf(faults []fault, at string, err error) []fault {
	// Not errors.As: it would look through a fault into the alternatives that it was tried against.
	switch err := err.(type) {
	case openapi3.MultiError:
		for _, one := range err {
			faults = faultsOf(faults, at, one)
		}
		return faults
	case *openapi3.SchemaError:
		for _, step := range err.JSONPointer() {
			at += "/" + pointerStep.Replace(step)
		}
		if err.SchemaField != "oneOf" {
			return append(faults, fault{Pointer: &at, Code: err.SchemaField, Detail: reasonOf(err)})
		}
		if branch := branchFor(err.Schema, err.Value); branch != nil {
			return faultsOf(faults, at, branch.VisitJSON(err.Value, openapi3.MultiErrors()))
		}
		return append(faults, fault{Pointer: &at, Code: "oneOf", Detail: "exactly one of the documented alternatives is needed"})
	}
	return append(faults, fault{Pointer: &at, Detail: "value breaks the schema"})
}

const maxReason = 200

// reasonOf is the fault in words. They name members, never values; a member's name can be as long as the body.
func reasonOf(err *openapi3.SchemaError) string {
	if len(err.Reason) > maxReason {
		return "value breaks the schema"
	}
	return err.Reason
}

var pointerStep = strings.NewReplacer("~", "~0", "/", "~1")

// branchFor is the one alternative that a value of this type is meant for, so that the faults can be told from there.
func branchFor(schema *openapi3.Schema, value any) *openapi3.Schema {
	var want string
	switch value.(type) {
	case json.Number:
		want = openapi3.TypeInteger
	case map[string]any:
		want = openapi3.TypeObject
	}
	for _, branch := range schema.OneOf {
		if want != "" && branch.Value.Type.Is(want) {
			return branch.Value
		}
	}
	return nil
}
