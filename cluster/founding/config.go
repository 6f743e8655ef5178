package founding

import "github.com/mortise-lock/mortise/internal/nodeid"

// Config configures the core of one instance.
type Config struct {
	Instance nodeid.ID // ID of the first incarnation; random, not zero
	Name     string
	Addr     string // host:port at which other instances reach this instance
	Settings Settings
	Rules    uint32 // newest version of the lock rules that this instance supports

	Durable bool // the host stores State before it sends or does anything that depends on it
	// number of starts with this directory; 1 without a directory; 0 means 1
	Life uint64
	// random number of this process, which tells two starts of the same number apart; 0 means none
	Boot   uint64
	Stored *State // State that the last start has stored; nil means none
}
