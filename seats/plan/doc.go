// Package plan is the room of seat plans: what a venue looks like before anything of it is for sale. It reads the plans that people
// have, says everything that is wrong with them at once, and writes its own format, documented in docs/plan.md. It is pure: no database,
// no network, no clock. A plan comes from a stranger, so nothing here may grow with it without a named limit, and nothing is corrected,
// merged or left out unless the report says so.
package plan
