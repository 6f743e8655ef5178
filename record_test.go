package mortise

import (
	"reflect"
	"testing"

	"github.com/mortise-lock/mortise/internal/replica"
)

func TestRecordsNameWhatFounds(t *testing.T) {
	for name, c := range map[string]Config{
		"alone":    {},
		"founders": {Join: []string{"x:1"}, Founders: []string{"b", "a"}},
		"replicas": {Join: []string{"x:1"}, Replicas: 3, Grace: -1},
	} {
		c = c.withDefaults()
		g := c.group()
		if g.Grace < 0 || c.alone() && g.Grace != 0 {
			t.Errorf("%s: a grace of %v", name, g.Grace)
		}
		if back := replica.FoundedWith(g.Founding(c.alone())); !reflect.DeepEqual(back, g) {
			t.Errorf("%s: founded with %+v, named %+v", name, back, g)
		}
	}
}
