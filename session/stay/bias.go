package stay

import "container/list"

// Limits of biases.
const (
	biasPasses  = 4      // a stay with this many passes is worth its cost
	biasLongest = 64     // grants that are not kept, at most, after a stay of little use
	biasKeys    = 10_000 // the keys of the newest biases
)

// biases remember the keys whose stays were of little use. A stay that ended by a recall after one
// pass costs a recall and saves no message, so the next grants of its key are not kept: 1, then 2,
// and so on up to 64.
type biases struct {
	byKey map[string]*list.Element
	order *list.List // of *bias, the longest unused first
}

type bias struct {
	key         string
	skip, width int
}

func newBiases() biases { return biases{byKey: map[string]*list.Element{}, order: list.New()} }

// skips reports whether the next grant of the key shall not be kept.
func (b *biases) skips(key string) bool {
	at := b.byKey[key]
	if at == nil || at.Value.(*bias).skip == 0 {
		return false
	}
	b.order.MoveToBack(at)
	at.Value.(*bias).skip--
	return true
}

// learn notes the passes of a stay that has ended, and whether it was recalled.
func (b *biases) learn(key string, passes int, recalled bool) {
	at := b.byKey[key]
	switch {
	case at != nil && passes >= biasPasses:
		b.forget(at)
	case recalled && passes < 2:
		if at == nil {
			if b.order.Len() >= biasKeys {
				b.forget(b.order.Front())
			}
			at = b.order.PushBack(&bias{key: key})
			b.byKey[key] = at
		}
		b.order.MoveToBack(at)
		its := at.Value.(*bias)
		its.width = min(max(1, 2*its.width), biasLongest)
		its.skip = its.width
	}
}

func (b *biases) forget(at *list.Element) { delete(b.byKey, b.order.Remove(at).(*bias).key) }
