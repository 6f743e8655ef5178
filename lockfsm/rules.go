//go:build !nextrules

package lockfsm

// This file and rules_nextrules.go hold everything in which a later version of the rules differs
// from the earlier ones. A new version adds its part here. The package comment lists what it may
// add.

// RulesVersion is the newest version of the rules that this build knows. See the package comment
// for what a version means.
const RulesVersion uint32 = 2

// laterState is the state that versions above 2 have added.
//
//lint:ignore U1000 it has its place in Machine for the next version
type laterState struct{}

// laterName returns the name of a kind that versions above 2 have added.
func (k Kind) laterName() string { return "unknown kind" }

// later reads the fields of a kind that versions above 2 have added. It refuses a kind under a
// version that does not have it, as a build that does not know the kind would.
func (r *reader) later(*view) { r.fail("kind") }

// later carries out a command of such a kind.
func (m *Machine) later(*view) Code { return Malformed }

// appendLater appends laterState to a snapshot, if its version is in force. Until then old and new
// builds must write the same bytes.
func (m *Machine) appendLater(b []byte) []byte { return b }

// restoreLater reads what appendLater has written.
func (m *Machine) restoreLater(*reader) {}
