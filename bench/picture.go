package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Lengths in the units of the picture.
const (
	namesWidth = 132
	panelWidth = 188
	barsWidth  = 132 // leaves room for the figure beside the longest bar
	rowHeight  = 22
	headHeight = 66
	footHeight = 58
	gapHeight  = 16 // between durable peers and other peers
	axisFrom   = 10.0
	axisTo     = 1e6
)

const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 } .head { font-weight: 600 } .small { font-size: 11px; fill: #59636e }
.axis { stroke: #d1d9e0 }
.mortise { fill: #0969da } .etcd { fill: #8c6d31 } .redis { fill: #b35968 }
.zookeeper { fill: #5f8a4e } .postgres { fill: #6b6ba8 }
.nats { fill: #2f8f8f } .olric { fill: #b07a2a } .wire { fill: #8c959f }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small { fill: #9198a1 } .axis { stroke: #3d444d }
.mortise { fill: #4493f8 } .etcd { fill: #c9a45c } .redis { fill: #d98b97 }
.zookeeper { fill: #8fbf7a } .postgres { fill: #a3a3e0 }
.nats { fill: #5fc0c0 } .olric { fill: #e0a85a } .wire { fill: #6e7781 }
}
</style>
`

// picture returns docs/speed.svg: a row for each peer, a panel for each workload, and bars on a
// logarithmic scale.
func picture(r Record) string {
	panels := []string{"serial", "parallel64", "parallel1024", "handover3", "handover64"}
	peers := r.measured(panels...)
	height := headHeight + len(peers)*rowHeight + gapHeight + footHeight
	width := namesWidth + len(panels)*panelWidth
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" `+
		`role="img" aria-label="Locks a second of all peers">`+"\n", width, height, width, height)
	b.WriteString(style)
	fmt.Fprintf(&b, `<text class="title" x="8" y="20">Locks a second, three instances on one machine `+
		"with %d cores (logarithmic; longer is better)</text>\n", r.Machine.Cores)
	bottom := float64(height - footHeight)
	for i, w := range panels {
		x := float64(namesWidth + i*panelWidth)
		fmt.Fprintf(&b, `<text class="head" x="%.0f" y="44">%s</text>`+"\n", x, workloadTitle(w))
		for decade := axisFrom; decade <= axisTo; decade *= 10 {
			at := x + along(decade)
			fmt.Fprintf(&b, `<line class="axis" x1="%.1f" y1="%d" x2="%.1f" y2="%.0f"/>`+"\n", at, headHeight-12, at,
				bottom)
			if math.Mod(math.Log10(decade), 2) == 1 {
				fmt.Fprintf(&b, `<text class="small" x="%.1f" y="%.0f" text-anchor="middle">%s</text>`+"\n", at,
					bottom+14, shortNumber(decade))
			}
		}
	}
	writeBars(&b, r, peers, panels)
	usual, _ := r.others()
	fmt.Fprintf(&b, `<text class="small" x="8" y="%.0f">above: on disk before it counts; `+
		"below: in memory, or not synced. %s; %s; others kept %.2f cores busy.</text>\n",
		bottom+34, r.medians(), html.EscapeString(r.Machine.When), usual)
	fmt.Fprintf(&b, `<text class="small" x="8" y="%.0f">redis, redis-always and postgres are one server, `+
		"whose loss is the loss of all locks; wire is no lock, but the limit; "+
		"what each promises is in the text.</text>\n", bottom+50)
	b.WriteString("</svg>\n")
	return b.String()
}

func writeBars(b *strings.Builder, r Record, peers []PeerRecord, panels []string) {
	y := float64(headHeight)
	for _, durable := range []bool{true, false} {
		for _, p := range peers {
			if p.Durable != durable {
				continue
			}
			fmt.Fprintf(b, `<text x="8" y="%.0f">%s</text>`+"\n", y+12, html.EscapeString(p.Name))
			for i, w := range panels {
				x := float64(namesWidth + i*panelWidth)
				if result, ok := r.find(p.Name, w); ok {
					length := along(result.Rate)
					fmt.Fprintf(b, `<rect class="%s" x="%.0f" y="%.0f" width="%.1f" height="14" rx="2"/>`+
						`<text x="%.1f" y="%.0f">%s</text>`+"\n",
						p.Kind, x, y, length, x+length+4, y+12, shortNumber(result.Rate))
				} else {
					fmt.Fprintf(b, `<text class="small" x="%.0f" y="%.0f">not measured</text>`+"\n", x, y+12)
				}
			}
			y += rowHeight
		}
		y += gapHeight
	}
}

func along(rate float64) float64 {
	return barsWidth * max(0.01, math.Log10(rate/axisFrom)/math.Log10(axisTo/axisFrom))
}
