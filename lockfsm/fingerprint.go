package lockfsm

import "fmt"

// The fingerprint of a version of the rules is a hash of its golden log: of the commands, their
// results and the state at the end. Two builds whose rules differ under one version have different
// fingerprints, as far as the log shows the difference. Only builds from unreleased commits can
// differ so, because the log of a released version never changes.
//
// TestGoldenLogs compares the constants with the logs, and writes both with -rewrite.

const fingerprint1 uint64 = 0x55851e19595c4c09

// Fingerprints returns the fingerprints of the versions of the rules that this build has, from
// version 1 on. The caller owns the slice.
func Fingerprints() []uint64 { return laterFingerprints([]uint64{fingerprint1}) }

// fingerprintOf returns the fingerprint of a version, or zero if this build does not have it.
func fingerprintOf(version uint32) uint64 {
	if all := Fingerprints(); version > 0 && uint64(version) <= uint64(len(all)) {
		return all[version-1]
	}
	return 0
}

// checkFingerprint returns an error if a state was made by other rules than those of this build,
// under the same version.
func checkFingerprint(version uint32, of uint64) error {
	if own := fingerprintOf(version); of != own {
		return fmt.Errorf("%w: it was written under lock rules %d with the fingerprint %016x, and this build has %016x: "+
			"the two builds are from different unreleased commits; run the build that wrote it, or begin with an empty "+
			"directory", ErrRules, version, of, own)
	}
	return nil
}
