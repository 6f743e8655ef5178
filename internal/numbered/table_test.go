package numbered

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

// TestTable compares tables with maps, through growth and decay, for numbers with several kinds of
// gaps.
func TestTable(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		width := []uint64{2, 100, 10_000, 1 << 40, 1 << 63}[seed%5]
		var table Table[uint64]
		want := map[uint64]*uint64{}
		next := uint64(1)
		for step := range 6000 {
			n := 1 + r.Uint64N(width)
			switch {
			case seed%2 == 0: // numbers ascend, and the deleted ones are any
				n = next
				next += 1 + r.Uint64N(width)/2000
			case seed%3 == 0 && step < 500:
				n = 1 << 62 >> (step % 60) // below all others
			}
			if grows := step/1000%2 == 0; r.IntN(4) == 0 == grows && len(want) > 0 {
				n = pick(r, want)
				for _, n := range []uint64{n, n + 3} { // the second may have no item
					table.Delete(n)
					delete(want, n)
				}
			} else {
				item := &n
				table.Put(n, item)
				want[n] = item
			}
			same(t, &table, want, r, step%100 == 0)
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
	}
}

func pick(r *rand.Rand, all map[uint64]*uint64) (best uint64) {
	from := r.Uint64()
	for n := range all {
		if best == 0 || n-from < best-from {
			best = n
		}
	}
	return best
}

func same(t *testing.T, table *Table[uint64], want map[uint64]*uint64, r *rand.Rand, all bool) {
	if table.Len() != len(want) {
		t.Errorf("%d items, want %d", table.Len(), len(want))
	}
	if !all {
		return
	}
	numbers := make([]uint64, 0, len(want))
	for n, item := range want {
		if numbers = append(numbers, n); table.Get(n) != item {
			t.Errorf("item %d is not found", n)
		}
		if want[n+1] == nil && table.Get(n+1) != nil {
			t.Errorf("found %d, which is not there", n+1)
		}
	}
	slices.Sort(numbers)
	var listed, walked []uint64
	for item := range table.All() {
		listed = append(listed, *item)
	}
	for item := table.First(); item != nil; item = table.After(*item) {
		walked = append(walked, *item)
	}
	if !slices.Equal(listed, numbers) || !slices.Equal(walked, numbers) {
		t.Errorf("listed %v, walked %v, want %v", listed, walked, numbers)
	}
	if len(numbers) > 0 {
		if last := table.Last(); *last != numbers[len(numbers)-1] {
			t.Errorf("last %d, want %d", *last, numbers[len(numbers)-1])
		}
		if at := r.IntN(len(numbers)); at > 0 && *table.After(numbers[at] - 1) != numbers[at] {
			t.Errorf("after %d is not %d", numbers[at]-1, numbers[at])
		}
	}
	for i, p := range table.pages {
		if len(p) == 0 && len(table.pages) > 1 || cap(p) > pageItems {
			t.Errorf("page %d has %d items, and room for %d", i, len(p), cap(p))
		}
		if i > 0 && len(table.pages[i-1])+len(p) <= joinedItems {
			t.Errorf("pages %d and %d have %d and %d items", i-1, i, len(table.pages[i-1]), len(p))
		}
	}
}

// TestTableIsSmall checks the room of a table: with ascending numbers, after most of its items were
// deleted in any order, and when one item comes and goes.
func TestTableIsSmall(t *testing.T) {
	const items = 100_000
	var table Table[int]
	for n := range uint64(items) {
		table.Put(n, new(int))
	}
	if each := float64(room(&table)) / items; each > 17 {
		t.Errorf("%.1f bytes for an item", each)
	}
	var descending Table[int]
	for n := range uint64(items) {
		descending.Put(items-n, new(int))
	}
	if each := float64(room(&descending)) / items; each > 18 {
		t.Errorf("%.1f bytes for an item of descending numbers", each)
	}
	r := rand.New(rand.NewPCG(1, 2))
	order := r.Perm(items)
	for _, n := range order[:items-items/20] {
		table.Delete(uint64(n))
	}
	if each := float64(room(&table)) / float64(table.Len()); each > 50 {
		t.Errorf("%.1f bytes for an item after most were deleted", each)
	}
	for _, n := range order[items-items/20:] {
		table.Delete(uint64(n))
	}
	if room := room(&table); room > 8<<10 {
		t.Errorf("an empty table has %d bytes", room)
	}
	for n := range uint64(items) {
		table.Put(n, new(int))
	}
	for n := range uint64(items - 100) { // the first ones end first
		table.Delete(n)
	}
	if room := room(&table); room > 8<<10 {
		t.Errorf("a table with 100 items has %d bytes", room)
	}
	var one Table[int]
	item := new(int)
	n := uint64(0)
	if allocated := testing.AllocsPerRun(1000, func() {
		n++
		one.Put(n, item)
		one.Delete(n)
	}); allocated > 0 {
		t.Errorf("%v allocations when one item comes and goes", allocated)
	}
}

// orders has an order of numbers for each way in which the owner of the numbers could make an item
// expensive. No number is zero.
func orders(items int) map[string][]uint64 {
	all := map[string][]uint64{}
	add := func(what string, number func(n int) uint64) {
		for n := range items {
			all[what] = append(all[what], number(n))
		}
	}
	apart := func(n int) uint64 { return uint64(n+1) << 40 }
	random := rand.New(rand.NewPCG(1, 2)).Perm(items)
	add("ascending", func(n int) uint64 { return uint64(n + 1) })
	add("descending", func(n int) uint64 { return uint64(items - n) })
	add("far apart", apart)
	add("far apart, descending", func(n int) uint64 { return apart(items - n) })
	add("far apart, in any order", func(n int) uint64 { return apart(random[n]) })
	add("in any order", func(n int) uint64 { return uint64(random[n] + 1) })
	add("descending, above a full page", func(n int) uint64 {
		if n < pageItems {
			return uint64(n + 1)
		}
		return apart(items - n)
	})
	add("between full pages", func(n int) uint64 {
		if full := items / 2; n >= full {
			return uint64(n-full)%uint64(full)*pageItems%uint64(full)<<20 + uint64(n)
		}
		return uint64(n+1) << 20
	})
	return all
}

// TestANumberMakesNoRoom checks that an item needs little room whatever the numbers and their order
// are, also after items were deleted so that few of each page are left.
func TestANumberMakesNoRoom(t *testing.T) {
	const items, limit = 4_000, 50
	for what, order := range orders(items) {
		for _, keep := range []int{1, 2, 3, 33, 63, 64, 65} {
			var table Table[int]
			for _, n := range order {
				table.Put(n, new(int))
			}
			if keep > 1 {
				sorted := slices.Sorted(slices.Values(order))
				for i, n := range sorted {
					if i%keep != 0 {
						table.Delete(n)
					}
				}
			}
			if each := room(&table) / uintptr(table.Len()); each > limit {
				t.Errorf("%s, each %dth kept: %d bytes for an item", what, keep, each)
			}
		}
	}
}

// TestANumberMakesNoWork checks that the list of pages is short for any numbers in any order,
// because an insertion copies a part of it.
func TestANumberMakesNoWork(t *testing.T) {
	const items, most = 4_000, 4_000*2/(joinedItems+1) + 1
	for what, order := range orders(items) {
		var table Table[int]
		for _, n := range order {
			if table.Put(n, new(int)); len(table.pages) > most {
				t.Fatalf("%s: %d pages for %d items", what, len(table.pages), table.Len())
			}
		}
	}
}

func room(t *Table[int]) (bytes uintptr) {
	for _, p := range t.pages {
		bytes += unsafe.Sizeof(place[int]{}) * uintptr(cap(p))
	}
	return bytes + unsafe.Sizeof(page[int]{})*uintptr(t.gone+cap(t.pages))
}

// TestBoundsOfPages tries the bounds of a page with two full pages, from which items are deleted.
func TestBoundsOfPages(t *testing.T) {
	pages := func(items int, left ...int) int {
		var table Table[int]
		for n := range items {
			table.Put(uint64(n), new(int))
		}
		for at, left := range left {
			for n := at*pageItems + left; n < (at+1)*pageItems; n++ {
				table.Delete(uint64(n))
			}
		}
		return len(table.pages)
	}
	limits.AtMost(t, "pageItems", pageItems, func(n int) bool { return pages(n) == 1 })
	limits.AtMost(t, "joinedItems", joinedItems, func(n int) bool { return pages(2*pageItems, n-20, 20) == 1 })
}
