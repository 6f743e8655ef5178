package lockfsm

// Machine is the state of one group and the rules by which it changes. It is not safe for
// concurrent use.
//
// Each part of a machine is a type with a file of its own, and only the methods of a part write its
// fields. The rules are methods of the machine. They stand beside the commands that use them.
type Machine struct {
	group
	sessions sessionTable
	locks    lockTable
	history  history
	digest   digest

	laterState //lint:ignore U1000 see there

	// The following parts are not in a snapshot. Restore counts the tally anew.
	tally
	captures   captures
	unsearched unsearched
	ripples    ripples
	answer     answer
	effort
	spares spares
}

// New returns the machine of a group that is not founded yet. The error lists everything that is
// wrong with the charter. It wraps ErrRules if the charter's rules are too new for this build.
func New(c Charter) (*Machine, error) { return newMachine(c, RulesVersion) }

func newMachine(c Charter, supported uint32) (*Machine, error) {
	g, err := groupOf(c, supported)
	if err != nil {
		return nil, err
	}
	return &Machine{
		group: g, sessions: newSessionTable(), locks: newLockTable(),
		history: history{first: uint64(g.rev)}, digest: digest{folded: g.rev}, effort: newEffort(),
	}, nil
}

// Failed returns the reason why this replica can no longer follow the log, or nil. The error wraps
// ErrRules if a Raise named a version that this build does not have, and ErrRevisions if the
// revisions are used up. The node of a failed machine must retire.
func (m *Machine) Failed() error { return m.failed }

// Charter returns the charter with the changes that Adopt and Raise made.
func (m *Machine) Charter() Charter { return m.charter }

// Born reports whether the group is founded.
func (m *Machine) Born() bool { return m.born }

// GraceOver reports whether the grace is over. The machine grants locks only after the grace.
func (m *Machine) GraceOver() bool { return m.graceOver }

// Counts returns the size of the state.
func (m *Machine) Counts() Counts { return m.counts }
