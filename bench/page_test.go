package main

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestPageAndPicture compares the page and the picture of a fixed record with files in testdata.
// After an intended change, run go test -run PageAndPicture -update.
func TestPageAndPicture(t *testing.T) {
	record, err := readRecord("testdata/speed.json")
	if err != nil {
		t.Fatal(err)
	}
	for path, got := range map[string]string{"testdata/SPEED.md": page(record), "testdata/speed.svg": picture(record)} {
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is no longer what it was; see it with -update and git diff", path)
		}
	}
}

var update = flag.Bool("update", false, "write the golden files")

func TestPictureIsXML(t *testing.T) {
	record, err := readRecord("testdata/speed.json")
	if err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(picture(record)))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestPageOfNothing(t *testing.T) {
	var empty Record
	if text := page(empty); !strings.Contains(text, "not measured") {
		t.Error(text)
	}
	if picture(empty) == "" {
		t.Error("no picture")
	}
}

func TestVerdicts(t *testing.T) {
	record := func(ours, theirs float64) Record {
		return Record{Results: []Result{{Peer: "a", Workload: "w", Rate: ours, P50: time.Duration(ours)},
			{Peer: "b", Workload: "w", Rate: theirs, P50: time.Duration(theirs)}}}
	}
	for _, c := range []struct {
		ours, theirs float64
		goal         goal
		want         string
	}{
		{100, 10, goal{value: rate, must: 5, reach: 10}, reached},
		{99, 10, goal{value: rate, must: 5, reach: 10}, met},
		{49, 10, goal{value: rate, must: 5, reach: 10}, missed},
		{49, 10, goal{value: rate, reach: 10}, below},
		{10, 20, goal{value: halfTime, lower: true, must: 1.5, reach: 2}, reached},
		{10, 16, goal{value: halfTime, lower: true, must: 1.5, reach: 2}, met},
		{10, 14, goal{value: halfTime, lower: true, must: 1.5, reach: 2}, missed},
		{10, 0, goal{value: halfTime, lower: true, must: 20, reach: 9}, met},
		{21, 0, goal{value: halfTime, lower: true, must: 20, reach: 9}, missed},
	} {
		g := c.goal
		g.ours, g.workload, g.show = "a", "w", showPlainly
		if c.theirs > 0 {
			g.theirs = "b"
		}
		if got := g.verdict(record(c.ours, c.theirs)); got != c.want {
			t.Errorf("%v against %v, must %v, reach %v: %s, want %s", c.ours, c.theirs, g.must, g.reach, got, c.want)
		}
	}
}

func TestMedianLeavesFailuresOut(t *testing.T) {
	m := median([]Result{{Rate: 3}, {Failed: "x"}, {Rate: 1}, {Rate: 2}})
	if m.Rate != 2 || m.Runs != 3 || m.Failed != "" {
		t.Errorf("%+v", m)
	}
	if m := median([]Result{{Failed: "x"}}); m.Failed != "x" {
		t.Errorf("%+v", m)
	}
}

func TestFormat(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 4.5: "4.5", 12.34: "12.3", 374: "374", 1849: "1,849",
		11_300: "11.3K", 373_600: "374K", 2_000_000: "2M"} {
		if got := shortNumber(v); got != want {
			t.Errorf("%v is shown as %s, want %s", v, got, want)
		}
	}
	for d, want := range map[time.Duration]string{67_000: "67 µs", 1_190_000: "1.19 ms", 254_000_000: "254 ms",
		1_500_000_000: "1.5 s", 12: "12 ns"} {
		if got := shortTime(d); got != want {
			t.Errorf("%v is shown as %s, want %s", d, got, want)
		}
	}
}

func TestEachKindOfPeerHasAColour(t *testing.T) {
	for _, p := range peers() {
		if light := "." + p.Kind + " { fill"; strings.Count(style, light) != 2 {
			t.Errorf("%s: the picture has no colours for kind %q", p.Name, p.Kind)
		}
	}
}
