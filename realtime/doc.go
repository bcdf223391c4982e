// Package realtime is the room of sockets: who is connected, what they look at, and how news reach many of them at once. It also keeps who is
// present, and carries messages between nodes, in Redis.
//
// It is a leaf. It knows no seats, no plans and no rights: what a frame means, and who may see what, is its user's. Nothing here waits for a
// slow client, except the one goroutine that a connection without a system socket of its own (TLS) has for its writes.
//
// A page session is one tab. Each connection of it is a new generation, a Session of its own; whatever cleans up names session, generation and
// node, and does nothing when another generation has taken over.
package realtime
