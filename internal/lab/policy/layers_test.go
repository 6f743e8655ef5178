package policy

import (
	"path/filepath"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/uses"
)

// The compiler prevents cycles between packages. This test limits cycles between files. A ceiling
// may only decrease.
func TestFilesUseEachOtherLess(t *testing.T) {
	most, err := uses.ReadCeilings(filepath.Join(root, "internal/lab/size/ceilings.txt"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := uses.Of(root, "./...")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 30 {
		t.Fatalf("found only %d packages: the rule would pass because it sees nothing", len(found))
	}
	for _, what := range append(most.Above(found), most.Below(found)...) {
		t.Error(what)
	}
	all, pairs := 0, 0
	for _, u := range found {
		all, pairs = all+u.Uses(), pairs+len(u.Pairs())
	}
	t.Logf("%d pairs of files use each other, of %d uses", pairs, all)
}
