package lockfsm

import "math"

// overlayItem is a session or a lock as it was before its first change during a capture. The body
// is encoded as in a snapshot, but without the ID of a session.
type overlayItem struct {
	place uint64 // the ID of the session, or the position of the lock
	body  []byte
}

// overlay is a min-heap of items by place. It grows in blocks, because a single growing slice would
// copy all items.
type overlay struct {
	blocks [][]overlayItem
	n      int
}

const overlayBlockItems = 256

func (h *overlay) at(i int) *overlayItem { return &h.blocks[i/overlayBlockItems][i%overlayBlockItems] }

func (h *overlay) first() uint64 {
	if h.n == 0 {
		return math.MaxUint64
	}
	return h.blocks[0][0].place
}

func (h *overlay) push(a overlayItem) {
	i := h.n
	if h.n++; h.n > len(h.blocks)*overlayBlockItems {
		h.blocks = append(h.blocks, make([]overlayItem, overlayBlockItems))
	}
	for i > 0 && a.place < h.at((i-1)/2).place {
		*h.at(i) = *h.at((i - 1) / 2)
		i = (i - 1) / 2
	}
	*h.at(i) = a
}

func (h *overlay) pop() overlayItem {
	lowest := *h.at(0)
	h.n--
	last := *h.at(h.n)
	*h.at(h.n) = overlayItem{}
	i := 0
	for down := 1; down < h.n; down = 2*i + 1 {
		if down+1 < h.n && h.at(down+1).place < h.at(down).place {
			down++
		}
		if last.place < h.at(down).place {
			break
		}
		*h.at(i) = *h.at(down)
		i = down
	}
	if h.n > 0 {
		*h.at(i) = last
	}
	return lowest
}
