package lockfsm

import "math"

// Mode is the way in which a request locks one of its keys. The modes are those of hierarchical
// locking, without SIX (Gray, Lorie, Putzolu and Traiger, "Granularity of Locks and Degrees of
// Consistency in a Shared Data Base", 1976). For each node above the one that it locks, a request
// has an intention. A mode is a number of permits of a total, so the rule of permits (see lock)
// decides which modes are compatible:
//
//	                  IS    IX    S     X
//	intention IS      yes   yes   yes   no
//	intention IX      yes   yes   no    no
//	subtree   S       yes   no    yes   no
//	exclusive X       no    no    no    no
//
// A shared request without modes is IS, so it excludes neither S nor IX. At most 65,536
// requests with IS or IX are compatible with an IX, and 65,535 with S.
//
// A request for one key can also be upgradable: compatible with IS and S, but not with IX, X and
// another upgradable request. At most 16,383 requests with S are compatible with it. A later
// request can upgrade its hold, see Command.Upgrades.
type Mode uint8

// The modes. The values are part of the log's format and never change.
const (
	ModeX  Mode = 0 // alone
	ModeIS Mode = 1 // above a key that the request locks as shared
	ModeIX Mode = 2 // above a key that the request locks exclusively
	ModeS  Mode = 3 // shared, together with all keys below
	ModeU  Mode = 4 // upgradable; only for a request with one key, without Delay

	ModePermits Mode = 5 // permits of a semaphore
)

const (
	subtreePermits    = 1 << 16
	upgradablePermits = 1<<30 + 1
	upgradableOf      = 1 << 31
)

// Terms returns the permits that a request with the mode takes, and the total that it names, by the
// rule of permits: 1 of 0 is one permit without a total, and 0 of 0 the only permit. ModePermits
// has none.
func (m Mode) Terms() (permits, of uint32) {
	switch m {
	case ModeIS:
		return 1, 0
	case ModeIX:
		return 1, subtreePermits
	case ModeS:
		return subtreePermits, math.MaxUint32
	case ModeU:
		return upgradablePermits, upgradableOf
	}
	return 0, 0
}

// semaphore reports whether the Permits and Of of a request with ModePermits are valid.
func semaphore(permits, of uint32) bool { return of > 1 && 0 < permits && permits <= of }

// Covers reports whether a holder with mode m excludes every mode that a holder with mode w
// excludes: only then may a request with mode w enter the hold instead of the queue. Permits of a
// semaphore neither cover nor are covered, because each of them counts. An unknown mode covers
// nothing.
func (m Mode) Covers(w Mode) bool {
	switch m {
	case ModeX:
		return w <= ModeU
	case ModeU:
		return w == ModeU || w == ModeS || w == ModeIS
	case ModeS:
		return w == ModeS || w == ModeIS
	case ModeIX:
		return w == ModeIX || w == ModeIS
	case ModeIS:
		return w == ModeIS
	}
	return false
}

// reader returns the mode of a holder with mode m after it has become a reader of its keys. With
// tree, a key that it has locked alone or together with all keys below stays closed to writers of
// the keys below.
func (m Mode) reader(tree bool) Mode {
	if tree && (m == ModeX || m == ModeS) {
		return ModeS
	}
	return ModeIS
}
