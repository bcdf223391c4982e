// Package faulttest provokes the faults that a sale must survive, on whole servers over real HTTP, Postgres, Redis and SMTP: requests that
// stop at named points, connections that are cut, services that are killed, paused and flushed. It has tests only.
package faulttest
