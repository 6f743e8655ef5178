// Package purpose names the purposes of locks that are normally held for long. The purpose is a
// label of the request, so it is stored with the lock. A version of mortise that does not support
// this label shows it like any other label.
package purpose

// Label is the key of the purpose among mortise.Request.Labels.
const Label = "mortise.purpose"

// These are the known purposes. Holds for these purposes, and the waits for them, last long by
// design.
const (
	Election = "election" // the holder is the leader, and the candidates wait for the lock
	Tick     = "tick"     // a lock of package tick itself, under which no code of a user runs
	Job      = "job"      // one long piece of work
)

// Lasting reports whether long holds and long waits are normal for a lock with these labels.
func Lasting(labels map[string]string) bool {
	switch labels[Label] {
	case Election, Tick, Job:
		return true
	}
	return false
}

// The function Of returns the labels of a lock with the given purpose.
func Of(purpose string) map[string]string { return map[string]string{Label: purpose} }
