package transport

import "sort"

const spareBytes = 1 << 20 // largest buffer kept for the next turn

// batch holds queued bytes of one kind. The bytes of one call must not be split.
type batch struct {
	data  []byte
	ends  []int // where each piece ends in data, ascending
	head  int   // number of taken pieces; ends[head] belongs to the first remaining piece
	sent  int
	lent  []byte // last result of cut, which the caller still reads
	spare []byte // empty buffer, reused for data
	habit habit
}

func (b *batch) add(piece []byte) {
	if len(piece) == 0 {
		return
	}
	if b.data == nil {
		b.data, b.spare = b.spare, nil
	}
	b.data = append(b.data, piece...)
	b.ends = append(b.ends, len(b.data))
}

func (b *batch) empty() bool { return b.head == len(b.ends) }

// cut removes and returns as many whole pieces as fit into `soft` bytes. If not even the first
// piece fits, cut returns only that piece, unless it has more than `hard` bytes. The result is
// valid until the next cut.
func (b *batch) cut(soft, hard int) []byte {
	if b.lent != nil {
		b.spare, b.lent = b.lent[:0], nil
	}
	if b.empty() {
		return nil
	}
	n := sort.SearchInts(b.ends[b.head:], b.sent+soft+1)
	if n == 0 {
		if b.ends[b.head]-b.sent > hard {
			return nil
		}
		n = 1
	}
	b.head += n
	end := b.ends[b.head-1]
	piece := b.data[b.sent:end:end]
	b.sent = end
	if b.empty() {
		if cap(b.data) <= spareBytes && b.habit.keeps(cap(b.data), len(b.data)) {
			b.lent, b.ends = b.data, b.ends[:0]
		} else {
			b.ends = nil
		}
		b.data, b.head, b.sent = nil, 0, 0
	}
	return piece
}
