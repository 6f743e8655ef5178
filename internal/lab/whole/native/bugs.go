package native

// Bug is a planted bug between the parts. Overlay puts it into the product beside those of package
// mutants, and scripts/whole -bug switches it on.
type Bug struct {
	Name   string
	Breaks string
	Seeds  int // the campaign catches it within that many seeds, from 1 on
}

// Bugs returns the bugs of bugs.diff, and those of package mutants that a campaign also catches.
func Bugs() []Bug {
	return []Bug{
		{"client-wake-lost", "a call beside a turn of the client waits for the next input", 100},
		{"keeper-wake-lost", "a frame that arrives beside a turn of the keeper waits for the next one", 100},
		{"link-wake-lost", "a frame that is queued beside the sender's last look waits for the next one", 100},
		{"log-wake-lost", "a message that arrives beside a turn of the log waits for the next tick", 100},
		{"unsent-messages-not-told", "raft messages that a link refuses count as sent", 500},
		{"unsent-frame-ignored", "a frame of a client that a link refuses counts as sent", 500},
		{"refused-proposal-ignored", "a batch that the log refuses counts as proposed", 500},
		{"own-sessions-not-told", "sessions of NewSession are not told of a lost stream", 500},
	}
}
