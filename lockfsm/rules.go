//go:build !nextrules

package lockfsm

// This file and rules_nextrules.go are the places at which a later version of the rules differs
// from the earlier ones. A new version adds its part here; what it may add is said in the package
// comment.

// RulesVersion is the newest version of the rules that this build knows. See the package comment
// for what a version means.
const RulesVersion uint32 = 2

// laterState is the state that versions above 2 have added.
//
//lint:ignore U1000 it has its place in Machine for the next version
type laterState struct{}

// laterName names the kinds that versions above 2 have added.
func (k Kind) laterName() string { return "unknown kind" }

// later reads the fields of a kind that versions above 2 have added. A kind that comes under a
// version which does not have it is as unknown as to a build that never heard of it: both must
// refuse it alike.
func (r *reader) later(*view) { r.fail("kind") }

// later carries out a command of such a kind.
func (m *Machine) later(*view) Code { return Malformed }

// appendLater appends such state to a snapshot, if its version is in force: until then old and new
// builds write the same bytes.
func (m *Machine) appendLater(b []byte) []byte { return b }

// restoreLater reads it.
func (m *Machine) restoreLater(*reader) {}
