package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

func shortTime(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d)
	case d < time.Millisecond:
		return threeDigits(float64(d)/1e3) + " µs"
	case d < time.Second:
		return threeDigits(float64(d)/1e6) + " ms"
	}
	return threeDigits(d.Seconds()) + " s"
}

// shortNumber formats a number with about three digits. It writes large numbers in thousands, as in
// 12.3K.
func shortNumber(v float64) string {
	switch {
	case v >= 999_500:
		return threeDigits(v/1e6) + "M"
	case v >= 9_995:
		return threeDigits(v/1e3) + "K"
	case v >= 999.5:
		return fmt.Sprintf("%d,%03d", int(math.Round(v))/1000, int(math.Round(v))%1000)
	}
	return threeDigits(v)
}

func shortBytes(v float64) string {
	switch {
	case v >= 999_500:
		return threeDigits(v/1e6) + " MB"
	case v >= 9_995:
		return threeDigits(v/1e3) + " KB"
	}
	return shortNumber(v) + " B"
}

func shortRatio(v float64) string { return "×" + threeDigits(v) }

func threeDigits(v float64) string {
	switch {
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	}
	text := fmt.Sprintf("%.2f", v)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
