// Package httpapi is the REST API: routes, who may use them, strict reading of requests, and the one table from errors to answers. The
// contract is openapi.yaml: the routes and types are generated from it, and requests are held to it. A handler reads a request, calls one
// use case of package booking and writes its answer; nothing here decides about a seat, knows SQL, or writes an error by itself.
package httpapi

//go:generate go tool -modfile=../../tools/go.mod oapi-codegen -config oapi-codegen.yaml openapi.yaml
