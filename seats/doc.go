// Package seats is the room of the seat itself: its states, its fence, and the transitions between them as conditional statements that
// take a transaction. It opens none, and it decides nothing by reading first: a transition returns the seats it got, and whoever asked
// for more has lost the rest.
package seats
