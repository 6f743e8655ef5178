package mutants

// voting are the bugs of who votes.
func voting() []Bug {
	return []Bug{
		{Name: "unsafe-change", Room: "cluster/voters", Hazard: "41, A5", Some: true, Breaks: "a change is proposed that a majority of the old and of the new voters could not commit"},
		{Name: "change-while-pending", Room: "cluster/voters", Hazard: "40", Some: true, Breaks: "a change is proposed while another is in flight or the configuration is joint"},
		{Name: "promoted-strangers", Room: "cluster/voters", Hazard: "41", Breaks: "two replicas get their votes that do not know each other; when the leader dies they are a majority, and elect none"},
		{Name: "even-voters", Room: "cluster/voters", Seeds: 20, Hazard: "41, B3", Some: true, Breaks: "two or four vote, and the loss of half of them stops the group"},
		{Name: "behind-promoted", Room: "cluster/voters", Hazard: "42", Some: true, Breaks: "a learner votes that lacks most of the log, and one more loss stalls the group"},
		{Name: "non-founder-votes", Room: "cluster/voters", Seeds: 40, Hazard: "S3", Some: true, Breaks: "others than founders vote, and the founders, all newborn, found a second group"},
		{Name: "votes-twice", Room: "cluster/voters", Hazard: "45, L9", Breaks: "one process, or two by one founder's name, has two votes"},
		{Name: "session-end-drops-voter", Room: "cluster/voters", Hazard: "43", Some: true, Breaks: "a voter is replaced because its session ended, though raft hears it"},
		{Name: "silence-at-once", Room: "cluster/voters", Hazard: "43", Some: true, Breaks: "every voter that is silent for a moment is replaced"},
		{Name: "life-over-ignored", Room: "cluster/voters", Hazard: "A10, L6", Some: true, Breaks: "a voter known to be gone is waited for, and the next restart takes the majority"},
		{Name: "zones-swap-back", Room: "cluster/voters", Hazard: "43", Breaks: "a member that comes and goes takes its voter's place back each time"},
		{Name: "restless-brought-in", Room: "cluster/voters", Hazard: "43", Some: true, Breaks: "a member that comes and goes is a change of voters each time"},
		{Name: "ended-id-added", Room: "cluster/voters", Seeds: 40, Hazard: "30, S4, B1", Some: true, Breaks: "a raft ID gets a second stay in the configuration, without its data"},
		{Name: "leader-removes-itself", Room: "cluster/voters", Seeds: 20, Hazard: "A5, 41", Some: true, Breaks: "a leader that leaves takes its own vote and strands the others"},
		{Name: "leaver-stops-early", Room: "cluster/voters", Hazard: "A5", Breaks: "a leaver stops while a joint configuration counts its vote, or on its own word"},
		{Name: "alone-is-enough", Room: "cluster/voters", Hazard: "A5", Breaks: "a leader that hears of no other voter lets a leaver stop, and dies: a majority is back and needs the leaver's vote"},
		{Name: "commit-not-told", Room: "cluster/voters", Hazard: "A5", Breaks: "a leaver stops when only the leader knows that it is out, and with the leader's death its vote is needed"},
		{Name: "live-one-removed", Room: "cluster/voters", Hazard: "L10", Some: true, Breaks: "three become one and the other healthy copy is thrown away"},
		{Name: "restless-left-out", Room: "cluster/voters", Hazard: "43, L6", Some: true, Breaks: "three restarts of all in a row leave one voter for three instances, and its restart ends the group"},
		{Name: "prepared-kept-over-terms", Room: "cluster/voters", Hazard: "B1, L9", Some: true, Breaks: "a learner is added that its instance has ended for another leader, and never catches up"},
		{Name: "used-id-not-ended", Room: "cluster/voters", Seeds: 40, Hazard: "30, S4, B1", Some: true, Breaks: "a learner that was removed and has not heard of it is added again under its ID"},
		{Name: "lost-stream-is-calm", Room: "cluster/voters", Hazard: "L6", Some: true, Breaks: "an instance is ready while nobody knows yet that another is gone, and a deployment takes the majority"},
		{Name: "losses-not-counted", Room: "cluster/voters", Hazard: "43", Some: true, Breaks: "a member that comes and goes is brought in each time, since nobody counts"},
		{Name: "others-may-stay", Room: "cluster/voters", Hazard: "none", Breaks: "a leaver that is the last who may vote stops at once, although instances without a vote stay"},
		{Name: "founder-offered-twice", Room: "cluster/voters", Hazard: "L9", Breaks: "two processes by one founder's name count as two that could vote"},
		{Name: "dead-learners-kept", Room: "cluster/voters", Seeds: 40, Hazard: "43, B2", Breaks: "learners that are gone stay in the configuration for ever"},
	}
}
