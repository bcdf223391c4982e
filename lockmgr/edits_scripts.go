package lockmgr

import (
	_ "embed"

	"github.com/redis/go-redis/v9"
)

// Which engine and which promises. With them Redis refuses a script as a whole
// when it is out of memory or read-only, and one over two slots of a cluster.
// Without them it would stop in the middle, a lock gone and no event about it.
const (
	grows   = "#!lua\n"
	shrinks = "#!lua flags=allow-oom\n"
)

var (
	//go:embed edits_common.lua
	editsCommonSrc string
	//go:embed edits_acquire.lua
	editsAcquireSrc string
	//go:embed edits_release.lua
	editsReleaseSrc string
	//go:embed edits_attach.lua
	editsAttachSrc string
	//go:embed edits_detach.lua
	editsDetachSrc string
	//go:embed edits_end.lua
	editsEndSrc string
	//go:embed edits_renew.lua
	editsRenewSrc string
	//go:embed edits_sweep.lua
	editsSweepSrc string
	//go:embed edits_touch.lua
	editsTouchSrc string
	//go:embed edits_revoke.lua
	editsRevokeSrc string
	//go:embed edits_list.lua
	editsListSrc string

	editsAcquire = redis.NewScript(grows + editsCommonSrc + editsAcquireSrc)
	editsRelease = redis.NewScript(shrinks + editsCommonSrc + editsReleaseSrc)
	editsAttach  = redis.NewScript(shrinks + editsCommonSrc + editsAttachSrc)
	editsDetach  = redis.NewScript(shrinks + editsCommonSrc + editsDetachSrc)
	editsEnd     = redis.NewScript(shrinks + editsCommonSrc + editsEndSrc)
	editsRenew   = redis.NewScript(shrinks + editsCommonSrc + editsRenewSrc)
	editsSweep   = redis.NewScript(shrinks + editsCommonSrc + editsSweepSrc)
	editsTouch   = redis.NewScript(shrinks + editsCommonSrc + editsTouchSrc)
	editsRevoke  = redis.NewScript(shrinks + editsCommonSrc + editsRevokeSrc)
	editsList    = redis.NewScript(shrinks + editsCommonSrc + editsListSrc)
)
