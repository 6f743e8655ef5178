// Package purpose names what a lock is for, where that decides whether a long hold is worth a
// warning. It is a label of the request, so it travels with the lock, and a build that does not
// know it shows it like any other label.
package purpose

// Label is the label of mortise.Request.Labels.
const Label = "mortise.purpose"

// The purposes that are known. A hold of each lasts long by design, and so do the waits for it.
const (
	Election = "election" // its holder leads, and the candidates wait until it does not
	Tick     = "tick"     // what package tick takes for itself: no code of a user works under it
	Job      = "job"      // one long piece of work
)

// Lasting reports whether long holds of a lock with these labels, and long waits for it, are as
// they should be.
func Lasting(labels map[string]string) bool {
	switch labels[Label] {
	case Election, Tick, Job:
		return true
	}
	return false
}

// Of returns the labels of a lock with one purpose.
func Of(purpose string) map[string]string { return map[string]string{Label: purpose} }
