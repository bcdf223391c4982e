package main

const (
	locks  = "./lockmgr"
	socket = "./realtime"
)

// live are the mutants of who watches and who edits.
var live = []mutant{
	{
		"a save does not ask whether the whole was taken after its page", booking,
		[]string{"TestStaleEditorIsRefusedBeforeAndAfterTheNewOnesFirstSave"},
		[]edit{query("drafts", "DraftSave", "OR d.group_fence < $3 AND EXISTS", "OR EXISTS")},
	},
	{
		"a save of the whole does not ask whether a page was taken after it", booking,
		[]string{"TestStaleEditorIsRefusedBeforeAndAfterTheNewOnesFirstSave"},
		[]edit{query("drafts", "DraftSave", " AND d.member_fence < $3", "")},
	},
	{
		"a save may have an older fence of its page", booking,
		[]string{"TestStaleEditorIsRefusedBeforeAndAfterTheNewOnesFirstSave"},
		[]edit{query("drafts", "DraftSave", "AND p.fence = $3 AND p.holder = $4::uuid", "AND p.fence >= $3")},
	},
	{
		"a fence is good for anybody", booking,
		[]string{"TestFenceIsGoodForWhoItWasGivenTo"},
		[]edit{query("drafts", "DraftSave", "AND p.fence = $3 AND p.holder = $4::uuid", "AND p.fence = $3")},
	},
	{
		"a change is numbered before the earlier one of its seat", booking,
		[]string{"TestFeedNumbersASeatInTheOrderOfItsFences"},
		[]edit{query("feed", "FeedPick", "max(n.at) OVER (PARTITION BY n.seat_id ORDER BY n.fence) AS at", "n.at")},
	},
	{
		"publishers do not lock the feed", booking,
		[]string{"TestManyPublishersGiveEachNumberOnce"},
		[]edit{query("feed", "FeedLock", " FOR UPDATE SKIP LOCKED", "")},
	},
	{
		"a state is shown again while changes wait for their numbers", booking,
		[]string{"TestMapStateIsNeverOlderThanItsQuestion"},
		[]edit{code("booking/feedstate.go", "return !head.Waiting && ", "return ")},
	},
	{
		"a page that went takes the hold of one that came back", booking,
		[]string{"TestPageThatIsBackWithinItsGraceKeepsItsHold"},
		[]edit{
			query("ghosts", "HoldPagesGone", "WHERE hp.gen = p.gen AND hp.node = p.node AND hp.gone_at IS NULL", "WHERE hp.gone_at IS NULL"),
			query("ghosts", "HoldPagesGone", "  AND hp.gen = l.gen AND hp.node = l.node AND hp.gone_at IS NULL", ""),
		},
	},
	{
		"a hold that is being paid for is given back", booking,
		[]string{"TestHoldsThatAreNeverReleasedAsLeft"},
		[]edit{
			query("ghosts", "HoldsLeft", "AND h.checkout_at IS NULL ", ""),
			query("ghosts", "HoldLockLeft", "AND checkout_at IS NULL ", ""),
		},
	},
	{
		"holds are given back when all pages are lost at once", booking,
		[]string{"TestLossOfMostPagesReleasesNothingUntilTheyAreBack"},
		[]edit{code("booking/ghosts.go", "if counts.Gone >= massLoss && 2*counts.Gone > counts.Pages {", "if false {")},
	},
	{
		"a lock is released by whoever asks", locks,
		[]string{"Test01ACloseFreesNoLockThatSomebodyElseGotAfterALapse", "Test20UnlockNeedsTheHoldersSessionAndToken"},
		[]edit{code("lockmgr/edits_release.lua", "if by ~= sid or token ~= ARGV[5] then", "if not by then")},
	},
	{
		"a page is locked beside the whole", locks,
		[]string{"Test07OneOfGroupAndMemberWins", "TestGroupAndMemberExcludeEachOther"},
		[]edit{code("lockmgr/edits_acquire.lua", "if res ~= '' then\n  rival('')", "if res ~= '' then\n  rival(res)")},
	},
	{
		"a lock is taken for a page that has closed", locks,
		[]string{"Test03AcquireThatComesAfterTheCloseIsRefused"},
		[]edit{code("lockmgr/edits_acquire.lua", "if s and (gen < s.gen or (gen == s.gen and (s.state ~= 'live' or s.node ~= node))) then", "if s and gen < s.gen then")},
	},
	{
		"the late end of an older socket ends the session", locks,
		[]string{"Test09TheLateEndOfAnOlderSocketChangesNothing"},
		[]edit{code("lockmgr/edits_common.lua", "return not s or gen > s.gen or (gen == s.gen and (node == s.node or s.state == 'closed'))", "return true")},
	},
	{
		"keys of locks have no end", locks,
		[]string{"TestNothingIsLeftWhenEveryNodeIsDead"},
		[]edit{code("lockmgr/edits_common.lua", "redis.call('PEXPIRE', key, LIFE)", "local _ = key")},
	},
	{
		"the late close of an older connection ends the session", socket,
		[]string{"TestLateCloseOfAnOlderConnectionChangesNothing"},
		[]edit{{"realtime/session.go", "func (h *Hub) detach(", "\n}\n", "if l.now != s || l.over {", "if l.over {"}},
	},
	{
		"a session goes on for whoever has its token", socket,
		[]string{"TestTokenOfSomebodyElseBeginsAnew"},
		[]edit{code("realtime/token.go", "mac.Write([]byte(p.Kind + p.ID))", "")},
	},
	{
		"a hole in the events is skipped", socket,
		[]string{"TestEventsAreHeardOnceAndInOrderWhateverTheirMessagesDo"},
		[]edit{code("realtime/bus.go", "\tcase m.Seq > s.seq:\n\t\tp.repair(s)", "\tcase m.Seq > s.seq:\n\t\ts.deliver(m.Seq, m.Data)")},
	},
	{
		"a viewer leaves with each tab", socket,
		[]string{"TestUserOfSeveralTabsIsThereOnce"},
		[]edit{code("realtime/roster.lua", "if redis.call('HINCRBY', USERS, user, -1) <= 0 then", "if redis.call('HINCRBY', USERS, user, -1) then")},
	},
	{
		"a ticket is good twice", "./internal/stream",
		[]string{"TestTicketIsGoodOnceOnAnyNode"},
		[]edit{code("internal/stream/ticket.go", "case !fresh:", "case fresh && false:")},
	},
}
