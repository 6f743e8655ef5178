// Package numbered has a table of items by number, for numbers that mostly ascend, such as those of
// the requests of a session. It replaces a map together with a linked list: it needs about 14 bytes
// for an item instead of 50, and finds the items in the order of their numbers.
//
// A table is a list of pages, each with the items of a range of numbers. A page that is full is
// divided, and pages with few items are joined. So no call copies more than a page and the list of
// pages, and a table gives its room back when its items are deleted. An item needs at most
// 150 bytes, with numbers so far apart that each has a page.
package numbered

import (
	"math"
	"slices"
	"sort"
)

// A page with at most fewItems is joined with a neighbor if both together have at most joinedItems,
// so that a joined page is not divided soon.
const (
	pageItems   = 64
	joinedItems = 48
	fewItems    = 24
)

// Table holds pointers to items by number. Each number has at most one item. The zero value is
// empty. A Table must not be used by several goroutines at the same time.
type Table[T any] struct {
	pages []page[T] // ascending; all have items, except an only page
	size  int
	gone  int // the dropped pages that the array of pages still has room for, before the first one
}

// page has the items with numbers from base on, below the base of the next page.
type page[T any] struct {
	base  uint64
	above []uint32 // the number of each item, less base; ascending
	items []*T
}

// Len returns the number of items.
func (t *Table[T]) Len() int { return t.size }

// Get returns the item with the number n, or nil.
func (t *Table[T]) Get(n uint64) *T {
	if t.size == 0 {
		return nil
	}
	p := &t.pages[t.pageOf(n)]
	if i, found := p.find(n); found {
		return p.items[i]
	}
	return nil
}

// First returns the item with the lowest number, or nil.
func (t *Table[T]) First() *T {
	if t.size == 0 {
		return nil
	}
	return t.pages[0].items[0]
}

// Last returns the item with the highest number, or nil.
func (t *Table[T]) Last() *T {
	if t.size == 0 {
		return nil
	}
	items := t.pages[len(t.pages)-1].items
	return items[len(items)-1]
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
	if i == len(t.pages[at].items) {
		if at, i = at+1, 0; at == len(t.pages) {
			return nil
		}
	}
	return t.pages[at].items[i]
}

// All returns the items in ascending order of number. The table must not change meanwhile.
func (t *Table[T]) All() func(yield func(*T) bool) {
	return func(yield func(*T) bool) {
		for i := range t.pages {
			for _, item := range t.pages[i].items {
				if !yield(item) {
					return
				}
			}
		}
	}
}

// Put adds an item, or replaces the item with the number n.
func (t *Table[T]) Put(n uint64, item *T) {
	if t.size == 0 {
		t.begin(n)
	}
	if t.pages[len(t.pages)-1].follows(n) { // the usual case
		t.pages[len(t.pages)-1].push(n, item)
		t.size++
		return
	}
	at := t.pageOf(n)
	i, found := t.pages[at].find(n)
	if found {
		t.pages[at].items[i] = item
		return
	}
	t.size++
	p := &t.pages[at]
	switch {
	case len(p.items) < pageItems && p.reaches(n):
	case i == len(p.items): // after all items of the page
		room := 0
		if i == pageItems { // the next one probably gets full, too
			room = pageItems
		}
		at, i = at+1, 0
		t.pages = slices.Insert(t.pages, at, newPage[T](n, room))
	case n < p.base: // it is the first page
		t.pages = slices.Insert(t.pages, at, newPage[T](n, 0))
	default:
		t.divide(at)
		if n >= t.pages[at+1].base {
			at, i = at+1, i-len(t.pages[at].items)
		}
	}
	t.pages[at].insert(i, n, item)
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
	left := len(p.items) - 1
	copy(p.above[i:], p.above[i+1:])
	copy(p.items[i:], p.items[i+1:])
	p.items[left] = nil
	p.above, p.items = p.above[:left], p.items[:left]
	switch {
	case left > fewItems || len(t.pages) == 1:
	case left == 0:
		t.drop(at)
	case at+1 < len(t.pages) && t.joins(at):
	case at > 0 && t.joins(at-1):
	default: // the numbers of its neighbors are too far away
		p.shrink()
	}
}

// begin prepares the empty table for its first item. Its only page is kept, so that a table which
// has an item from time to time allocates nothing.
func (t *Table[T]) begin(n uint64) {
	if len(t.pages) == 0 {
		t.pages = append(t.pages, page[T]{})
	}
	t.pages[0].base = n
}

func newPage[T any](base uint64, room int) page[T] {
	return page[T]{base, make([]uint32, 0, room), make([]*T, 0, room)}
}

// pageOf returns the place of the page that has the number n, or would have it.
func (t *Table[T]) pageOf(n uint64) int {
	if last := len(t.pages) - 1; n >= t.pages[last].base {
		return last
	}
	return t.search(n)
}

func (t *Table[T]) search(n uint64) int {
	last := len(t.pages) - 1
	if last == 0 || n < t.pages[1].base {
		return 0
	}
	return sort.Search(last, func(i int) bool { return t.pages[i+1].base > n })
}

// drop removes a page, which is not the only one.
func (t *Table[T]) drop(at int) {
	if at == 0 { // if the first items are deleted one after the other, nothing is copied
		t.pages[0] = page[T]{}
		t.pages = t.pages[1:]
		t.gone++
	} else {
		t.pages = slices.Delete(t.pages, at, at+1)
	}
	if room := t.gone + cap(t.pages); room > 4*len(t.pages) && room > pageItems {
		t.pages, t.gone = slices.Clone(t.pages), 0
	}
}

// joins adds the items of the next page to a page, and reports whether they have room there.
func (t *Table[T]) joins(at int) bool {
	p, next := &t.pages[at], &t.pages[at+1]
	last := next.base + uint64(next.above[len(next.above)-1])
	if len(p.items)+len(next.items) > joinedItems || !p.reaches(last) {
		return false
	}
	for i, item := range next.items {
		p.push(next.base+uint64(next.above[i]), item)
	}
	t.drop(at + 1)
	return true
}

// divide moves the upper half of a full page to a new one.
func (t *Table[T]) divide(at int) {
	const half = pageItems / 2
	p := &t.pages[at]
	upper := newPage[T](p.base+uint64(p.above[half]), pageItems)
	for i, item := range p.items[half:] {
		upper.push(p.base+uint64(p.above[half+i]), item)
	}
	clear(p.items[half:])
	p.above, p.items = p.above[:half], p.items[:half]
	t.pages = slices.Insert(t.pages, at+1, upper)
}

// find returns the place of the number n in the page, and whether it is there.
func (p *page[T]) find(n uint64) (int, bool) {
	if n < p.base {
		return 0, false
	}
	above := n - p.base
	// Without a gap before it, an item is at the place of its number.
	if above < uint64(len(p.above)) && uint64(p.above[above]) == above {
		return int(above), true
	}
	low, high := 0, len(p.above)
	for low < high {
		if mid := int(uint(low+high) >> 1); uint64(p.above[mid]) < above {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, low < len(p.above) && uint64(p.above[low]) == above
}

// reaches reports whether a page can have the number n.
func (p *page[T]) reaches(n uint64) bool {
	if n >= p.base {
		return n-p.base <= math.MaxUint32
	}
	return len(p.above) == 0 || p.base-n+uint64(p.above[len(p.above)-1]) <= math.MaxUint32
}

// follows reports whether the number n is above those of the page, which has room for it.
func (p *page[T]) follows(n uint64) bool {
	k := len(p.above)
	return n >= p.base && n-p.base <= math.MaxUint32 && k < pageItems &&
		(k == 0 || n-p.base > uint64(p.above[k-1]))
}

// shrink gives back the room of a page that has few items.
func (p *page[T]) shrink() {
	if room := 2 * len(p.items); 2*room <= cap(p.items) {
		p.move(room)
	}
}

// grow makes room for another item.
func (p *page[T]) grow() {
	if n := len(p.items); n == cap(p.items) {
		p.move(min(max(1, 2*n), pageItems))
	}
}

func (p *page[T]) move(room int) {
	p.above = append(make([]uint32, 0, room), p.above...)
	p.items = append(make([]*T, 0, room), p.items...)
}

// push adds the item with the highest number.
func (p *page[T]) push(n uint64, item *T) {
	p.grow()
	p.above = append(p.above, uint32(n-p.base))
	p.items = append(p.items, item)
}

// insert adds an item at a place of the page, which has room for it.
func (p *page[T]) insert(at int, n uint64, item *T) {
	if n < p.base {
		for i := range p.above {
			p.above[i] += uint32(p.base - n)
		}
		p.base = n
	}
	p.grow()
	p.above = slices.Insert(p.above, at, uint32(n-p.base))
	p.items = slices.Insert(p.items, at, item)
}
