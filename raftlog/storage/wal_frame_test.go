package storage

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A sector that did not reach the disk must not be taken for a flipped bit, even if its payload has
// a single bit set. Otherwise an undamaged log would be refused after a power loss.
func TestLostSectorIsNoFlip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		number, salt, n := r.Uint64(), r.Uint64(), 8*(2+r.IntN(20))
		payload := make([]byte, n)
		payload[n-1-r.IntN(8)] = 1 << r.IntN(8)
		frame := sealFrame(append(make([]byte, frameHeadBytes), payload...), number, salt)
		other := sealFrame(make([]byte, frameHeadBytes+n), number, salt)
		for name, old := range map[string][]byte{"zeros": make([]byte, 8), "another attempt": other[len(other)-8:]} {
			disk := append(slices.Clone(frame[:len(frame)-8]), old...)
			if _, _, v := readFrame(disk, number, salt); v != frameTorn {
				t.Fatalf("%s at the end of a frame of %d bytes: verdict %d, want torn", name, len(frame), v)
			}
		}
	}
}

func TestVerdicts(t *testing.T) {
	const number, salt = 5, 77
	frame := func(number, salt uint64, n int) []byte {
		return sealFrame(append(make([]byte, frameHeadBytes), testData(number, salt, n)...), number, salt)
	}
	whole := frame(number, salt, 100)
	cut := append(slices.Clone(whole[:64]), make([]byte, 200)...)
	flip := slices.Clone(whole)
	flip[50] ^= 8
	flipHead := slices.Clone(whole)
	flipHead[5] ^= 1
	long := slices.Clone(whole)
	frameHead{length: 1 << 20, number: number, salt: salt}.put(long)
	for name, c := range map[string]struct {
		b    []byte
		want verdict
	}{
		"whole":                    {whole, frameWhole},
		"whole, and more":          {append(slices.Clone(whole), 1, 2, 3), frameWhole},
		"nothing":                  {nil, frameAbsent},
		"zeros":                    {make([]byte, 100), frameAbsent},
		"of another segment":       {frame(number, salt+1, 100), frameAbsent},
		"cut":                      {cut, frameTorn},
		"cut, a later one follows": {append(cut, frame(number+1, salt, 8)...), frameDamaged},
		"absent, a later follows":  {append(make([]byte, 64), frame(number+3, salt, 8)...), frameDamaged},
		"a bit flipped":            {flip, frameDamaged},
		"a bit of the head":        {flipHead, frameDamaged},
		"an earlier one":           {frame(number-1, salt, 8), frameDamaged},
		"beyond the segment":       {long, frameDamaged},
	} {
		if _, _, v := readFrame(c.b, number, salt); v != c.want {
			t.Errorf("%s: verdict %d, want %d", name, v, c.want)
		}
	}
}
