package judge

import (
	"math/rand/v2"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/mortise-lock/mortise/lockfsm"
)

// TestNarrowTimesChangeNoJudgement compares the judgements about random operations with narrow
// times and with the given ones.
func TestNarrowTimesChangeNoJudgement(t *testing.T) {
	verdicts := map[bool]int{}
	for seed := range uint64(6000) {
		k := randomKey(rand.New(rand.NewPCG(seed, 1)))
		given := append([]porcupine.Operation(nil), k.operations...)
		k.narrow()
		for i := range given {
			given[i].Input = k.operations[i].Input // with the field after
		}
		model := fencedLock([]*key{k})
		narrow := porcupine.CheckOperations(model, k.operations)
		k.operations = given
		if wide := porcupine.CheckOperations(model, given); wide != narrow {
			t.Fatalf("seed %d: judged %v, and with narrow times %v", seed, wide, narrow)
		}
		verdicts[narrow]++
	}
	if min(verdicts[true], verdicts[false]) < 500 {
		t.Errorf("the operations are too seldom right or too seldom wrong: %v", verdicts)
	}
}

// randomKey returns the operations of readers and writers that hold the lock one after another or
// together, and of upgradable holds with an upgrade. Their times are wide and some of them wrong.
func randomKey(rng *rand.Rand) *key {
	k := &key{}
	add := func(o operation, at int64) {
		from, to := at-rng.Int64N(30), at+rng.Int64N(30)
		if rng.IntN(12) == 0 {
			from, to = from+20, to+20
		}
		k.operations = append(k.operations,
			porcupine.Operation{ClientId: len(k.operations), Input: o, Call: from, Return: to})
	}
	now := int64(0)
	for token := range lockfsm.Token(2 + rng.IntN(5)) {
		o := operation{token: 2*token + 1, share: share{1, 1}}
		if rng.IntN(3) > 0 {
			o.share.of = 1 << 30
		}
		granted, ended := now, now+1+rng.Int64N(20)
		if rng.IntN(4) == 0 {
			o.share = upgradable()
			raised := granted + rng.Int64N(ended-granted+1)
			add(operation{token: o.token + 1, share: share{1, 1}, hold: o.token}, raised)
			add(operation{kind: end, token: o.token + 1}, raised+rng.Int64N(ended-raised+1))
			now = raised
		}
		add(o, granted)
		for range rng.IntN(3) {
			o.kind = seen
			add(o, granted+rng.Int64N(ended-granted+1))
		}
		lowered := ended
		if o.share.of == 1 && rng.IntN(2) == 0 {
			o.kind, lowered = lower, granted+rng.Int64N(ended-granted+1)
			add(o, lowered)
		}
		if o.kind = end; rng.IntN(8) > 0 {
			add(o, ended)
		}
		if now += rng.Int64N(10); o.share.of == 1 || rng.IntN(3) == 0 {
			now = lowered
		}
	}
	return k
}
