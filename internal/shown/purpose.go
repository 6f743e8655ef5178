package shown

// PurposeLabel is the label of a request for a lock that is normally held for long. A version of
// mortise that does not support it shows it like any other label.
const PurposeLabel = "mortise.purpose"

// The known purposes. Holds for these purposes, and the waits for them, last long by
// design.
const (
	Election = "election" // the holder is the leader, and the candidates wait for the lock
	Tick     = "tick"     // a lock of package tick itself, under which no code of a user runs
	Job      = "job"      // one long piece of work
)

// Lasting reports whether long holds and long waits are normal for a lock with these labels.
func Lasting(labels map[string]string) bool {
	switch labels[PurposeLabel] {
	case Election, Tick, Job:
		return true
	}
	return false
}

// Purpose returns the labels of a lock with the given purpose.
func Purpose(of string) map[string]string { return map[string]string{PurposeLabel: of} }
