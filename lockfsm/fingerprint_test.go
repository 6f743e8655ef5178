package lockfsm

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// TestAStateOfOtherRulesIsRefused restores a snapshot of a build with the same version and other
// rules.
func TestAStateOfOtherRulesIsRefused(t *testing.T) {
	w := newWorld(t)
	b := w.m.Snapshot(nil)
	binary.LittleEndian.PutUint64(b[printAt:], fingerprintOf(1)+1)
	b = binary.LittleEndian.AppendUint32(b[:len(b)-checksumBytes], checksum(b[:len(b)-checksumBytes]))
	_, err := Restore(b)
	if !errors.Is(err, ErrRules) || !errors.Is(err, ErrSnapshot) ||
		!strings.Contains(err.Error(), "run the build that wrote it, or begin with an empty directory") {
		t.Errorf("Restore: %v", err)
	}
}
