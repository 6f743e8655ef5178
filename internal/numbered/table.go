// Package numbered has a table of items by number, for numbers that mostly ascend, such as those of
// the requests of a session. It replaces a map together with a linked list: it needs 17 bytes for
// an item instead of 50, and finds the items in the order of their numbers.
//
// A table is a list of pages, each with up to 64 items in the order of their numbers. A full page
// is divided, and two neighbors with at most 48 items are joined. So a table needs at most 50 bytes
// for an item and 3 kB more, and gives its room back when its items are deleted. A call copies at
// most a few pages and the list of pages. These limits hold for any numbers in any order, because
// the owner of a session chooses them.
package numbered

import (
	"slices"
	"sort"
)

const (
	pageItems   = 64
	joinedItems = 48 // below pageItems, so that a joined page is not divided soon
)

// Table holds pointers to items by number. Each number has at most one item. The zero value is
// empty. A Table must not be used by several goroutines at the same time.
type Table[T any] struct {
	// The pages ascend. All have items, except an only page; two neighbors have more than
	// joinedItems together.
	pages []page[T]
	size  int
	gone  int // at most so many dropped pages that the array of pages still has room for, before the first one
}

type page[T any] []place[T] // ascending

type place[T any] struct {
	number uint64
	item   *T
}

// Len returns the number of items.
func (t *Table[T]) Len() int { return t.size }

// Get returns the item with the number n, or nil.
func (t *Table[T]) Get(n uint64) *T {
	if t.size == 0 {
		return nil
	}
	p := t.pages[t.pageOf(n)]
	if i, found := p.find(n); found {
		return p[i].item
	}
	return nil
}

// First returns the item with the lowest number, or nil.
func (t *Table[T]) First() *T {
	if t.size == 0 {
		return nil
	}
	return t.pages[0][0].item
}

// Lowest returns the lowest number of an item, or zero.
func (t *Table[T]) Lowest() uint64 {
	if t.size == 0 {
		return 0
	}
	return t.pages[0][0].number
}

// Last returns the item with the highest number, or nil.
func (t *Table[T]) Last() *T {
	if t.size == 0 {
		return nil
	}
	return t.pages[len(t.pages)-1].last().item
}

// After returns the item with the lowest number above n, or nil.
func (t *Table[T]) After(n uint64) *T {
	if t.size == 0 {
		return nil
	}
	at := t.pageOf(n)
	i, found := t.pages[at].find(n)
	if found {
		i++
	}
	if i == len(t.pages[at]) {
		if at, i = at+1, 0; at == len(t.pages) {
			return nil
		}
	}
	return t.pages[at][i].item
}

// All returns the items in ascending order of number. The table must not change meanwhile.
func (t *Table[T]) All() func(yield func(*T) bool) {
	return func(yield func(*T) bool) {
		for _, p := range t.pages {
			for i := range p {
				if !yield(p[i].item) {
					return
				}
			}
		}
	}
}

// Put adds an item, or replaces the item with the number n.
func (t *Table[T]) Put(n uint64, item *T) {
	if len(t.pages) == 0 {
		t.pages = append(t.pages, nil)
	}
	at := t.pageOf(n)
	i, found := t.pages[at].find(n)
	if found {
		t.pages[at][i].item = item
		return
	}
	t.size++
	if len(t.pages[at]) == pageItems {
		at, i = t.makeRoom(at, i, n)
	}
	p := &t.pages[at]
	if len(*p) == cap(*p) {
		*p = p.withRoom(min(max(1, 2*len(*p)), pageItems))
	}
	*p = append(*p, place[T]{n, item})
	if all := *p; i < len(all)-1 {
		copy(all[i+1:], all[i:])
		all[i] = place[T]{n, item}
	}
}

// makeRoom makes room for an item that belongs at place i of a full page, and returns its page and
// place then.
func (t *Table[T]) makeRoom(at, i int, n uint64) (int, int) {
	next := at + 1
	switch {
	case i == 0: // the first page: numbers descend
		t.pages = slices.Insert(t.pages, 0, nil)
		return 0, 0
	case i < pageItems:
		t.divide(at)
		t.join(next)
		t.join(at - 1)
		at = t.pageOf(n)
		i, _ = t.pages[at].find(n)
		return at, i
	case next == len(t.pages): // the usual case: the new page probably gets full, too
		t.pages = append(t.pages, make(page[T], 0, pageItems))
	case len(t.pages[next]) == pageItems:
		t.pages = slices.Insert(t.pages, next, nil)
	}
	return next, 0
}

// Delete deletes the item with the number n, if there is one.
func (t *Table[T]) Delete(n uint64) {
	if t.size == 0 {
		return
	}
	at := t.pageOf(n)
	p := &t.pages[at]
	i, found := p.find(n)
	if !found {
		return
	}
	t.size--
	last := len(*p) - 1
	copy((*p)[i:], (*p)[i+1:])
	(*p)[last] = place[T]{}
	*p = (*p)[:last]
	switch {
	case len(t.pages) == 1: // an only page is kept, so that an item which comes and goes makes no room
	case len(*p) == 0:
		t.drop(at) // its neighbors have more than joinedItems together
	default:
		t.join(at)
		t.join(at - 1)
	}
}

// pageOf returns the place of the page that has the number n, or would have it.
func (t *Table[T]) pageOf(n uint64) int {
	last := len(t.pages) - 1
	if last == 0 || n >= t.pages[last][0].number {
		return last
	}
	return sort.Search(last, func(i int) bool { return t.pages[i+1][0].number > n })
}

// drop removes a page, which is not the only one.
func (t *Table[T]) drop(at int) {
	if at == 0 { // if the first items are deleted one after the other, nothing is copied
		t.pages[0] = nil
		t.pages = t.pages[1:]
		t.gone++
	} else {
		t.pages = slices.Delete(t.pages, at, at+1)
	}
	if room := t.gone + cap(t.pages); room > 4*len(t.pages) && room > pageItems {
		t.pages, t.gone = slices.Clone(t.pages), 0
	}
}

// join moves the items of the next page to the page at the given place, if there are such pages and
// they have few items.
func (t *Table[T]) join(at int) {
	if at < 0 || at+1 >= len(t.pages) {
		return
	}
	p, next := t.pages[at], t.pages[at+1]
	items := len(p) + len(next)
	if items > joinedItems {
		return
	}
	if items > cap(p) {
		p = p.withRoom(pageItems)
	}
	t.pages[at] = append(p, next...)
	t.drop(at + 1)
}

// divide moves the upper half of a full page to a new one.
func (t *Table[T]) divide(at int) {
	const half = pageItems / 2
	p := t.pages[at]
	upper := p[half:].withRoom(pageItems)
	clear(p[half:])
	t.pages[at] = p[:half]
	t.pages = slices.Insert(t.pages, at+1, upper)
}

// withRoom returns a copy of the page that has room for that many items.
func (p page[T]) withRoom(items int) page[T] { return append(make(page[T], 0, items), p...) }

func (p page[T]) last() place[T] { return p[len(p)-1] }

// find returns the place of the number n in the page, and whether it is there.
func (p page[T]) find(n uint64) (int, bool) {
	if len(p) == 0 || n > p.last().number { // the usual case of Put
		return len(p), false
	}
	// Without a gap before it, an item is at the place of its number.
	if i := n - p[0].number; i < uint64(len(p)) && p[i].number == n {
		return int(i), true
	}
	return slices.BinarySearchFunc(p, n, func(a place[T], n uint64) int {
		switch {
		case a.number < n:
			return -1
		case a.number > n:
			return 1
		}
		return 0
	})
}
