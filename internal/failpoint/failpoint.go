// Package failpoint names the places where a test may stop a request on purpose: right before its write, before its commit, after it.
// Built without the tag "failpoint", as every release is, the places are empty functions and the registry does not exist.
package failpoint

// The named places, in the order a sale passes them.
const (
	BeforeWrite  = "before_write"  // everything is decided but the write
	BeforeCommit = "before_commit" // written, not committed
	AfterCommit  = "after_commit"  // committed, not answered
	BeforeSend   = "before_send"   // a mail is built, not sent
	AfterSend    = "after_send"    // a mail is sent, its job not done
)
