//go:build !nextrules

package lockfsm

// This file and rules_nextrules.go hold everything in which a later version of the rules differs.
// The package comment lists what a version may add.

// RulesVersion is the newest version of the rules that this build knows; see the package comment.
const RulesVersion uint32 = 2

// laterState is the state that versions above 2 have added.
//
//lint:ignore U1000 it has its place in Machine for the next version
type laterState struct{}

// laterName returns the name of a kind that versions above 2 have added.
func (k Kind) laterName() string { return "unknown kind" }

// later reads the fields of a kind that versions above 2 have added. It refuses a kind under a
// version that does not have it, as an older build would.
func (r *reader) later(*view) { r.fail("kind") }

// later carries out a command of such a kind.
func (m *Machine) later(*view) Code { return Malformed }

// appendLater appends laterState to a snapshot, if its version is in force. Until then old and new
// builds must write the same bytes.
func (m *Machine) appendLater(b []byte) []byte { return b }

func (m *Machine) restoreLater(*reader) {}
