package founding

import (
	"slices"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/attack"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// TestTheWordsOfAttackersAreUnderstood decodes the messages of the hostile peer. An attack whose
// messages are malformed shows nothing about the product.
func TestTheWordsOfAttackersAreUnderstood(t *testing.T) {
	id := nodeidtest.ID(5)
	said := []attack.Replica{{Raft: 7, Instance: nodeidtest.ID(2), Addr: "b:1", Life: 3}}
	want := []Voter{{Raft: 7, Instance: nodeidtest.ID(2), Addr: "b:1", Life: 3}}
	w, err := decodeInfo(attack.InstanceInfo("n", "a:1", 9, 12, said))
	if err != nil || w.Name != "n" || w.Addr != "a:1" || w.Phase != Member || !w.Leader || w.Group != 9 || w.At != 12 ||
		w.Life != 1 || w.AskerLife != 1 || w.Rules == 0 || w.Settings.Replicas != 3 || !slices.Equal(w.Voters, want) {
		t.Errorf("an info: %+v, %v", w, err)
	}
	p, err := decodePush(attack.Push(id, 9, 12, said))
	if err != nil || p.To != id || p.Group != 9 || p.At != 12 || !slices.Equal(p.Voters, want) {
		t.Errorf("a push: %+v, %v", p, err)
	}
	q, err := decodePrepare(attack.Prepare(id, 9, 6, 4, 12, said))
	if err != nil || q.To != id || q.Group != 9 || q.Raft != 6 || q.Term != 4 || q.At != 12 ||
		!slices.Equal(q.Voters, want) {
		t.Errorf("a prepare: %+v, %v", q, err)
	}
}
