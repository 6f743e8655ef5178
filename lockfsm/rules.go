//go:build !nextrules

package lockfsm

// This file and rules_nextrules.go contain all code that a later version of the rules changes.

// RulesVersion is the newest version of the rules that this build has.
const RulesVersion uint32 = 1

// laterState is the state that versions above 1 have added.
//
//lint:ignore U1000 it has its place in Machine for the next version
type laterState struct{}

// laterCommand contains the fields that versions above 1 have added to Command, and laterView the
// decoded ones.
type (
	laterCommand struct{}
	laterView    struct{}
)

// These methods encode and decode the later fields of an Acquire.
func (laterCommand) laterFlags() uint64          { return 0 }
func (laterCommand) appendLater(b []byte) []byte { return b }
func (v *view) laterFlags() uint64               { return 0 }
func (v *view) laterCommand() laterCommand       { return laterCommand{} }
func (v *view) laterAcquire(*reader, uint64)     {}

// laterName returns the name of a kind that a later version adds.
func (k Kind) laterName() string { return "unknown kind" }

// This method decodes the fields of a command whose kind is new in a future rules version. If the
// command names an older rules version, the method refuses the kind, so that all builds give the
// same result.
func (v *view) later(r *reader) { r.fail("kind") }

func (m *Machine) later() Code { return Malformed }

// appendLater appends laterState to a snapshot if its version is in force. Before that, old and new
// builds must write the same bytes.
func (m *Machine) appendLater(b []byte) []byte { return b }

// laterFingerprints appends the fingerprints of the versions above 1.
func laterFingerprints(all []uint64) []uint64 { return all }

func (m *Machine) restoreLater(*reader) {}
