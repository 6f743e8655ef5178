package check

import "testing"

func TestMembers(t *testing.T) {
	one, two, three := Member{1, 11}, Member{2, 12}, Member{3, 13}
	configured := func(j *Members, at uint64, members []Member, voters ...uint64) error {
		_, err := j.Configured(9, at, members, voters)
		return err
	}
	var j Members
	wantFine(t, j.Begins(9, 1, 11, true), j.Begins(9, 2, 12, true), configured(&j, 1, []Member{one, two}, 1, 2),
		j.Begins(9, 1, 11, false))
	wantFine(t, j.Begins(8, 1, 14, true)) // another group
	if fresh, err := j.Configured(9, 1, []Member{one, two}, []uint64{1, 2}); fresh || err != nil {
		t.Fatal("a repeated configuration is reported as new", err)
	}
	if fresh, err := j.Configured(9, 7, []Member{one, three}, []uint64{1}); !fresh || err != nil {
		t.Fatal("a new configuration is not reported as new", err)
	}
	wantFine(t, configured(&j, 5, []Member{one, two, three}, 1, 2))        // from a lagging replica
	wantBroken(t, configured(&j, 9, []Member{one, two}, 1), &j, "members") // 2 had been removed

	j = Members{}
	wantFine(t, configured(&j, 1, []Member{one, two}, 1, 2), configured(&j, 9, []Member{one, two}, 1, 2))
	wantFine(t, configured(&j, 5, []Member{one}, 1)) // reported late; it shows that 2 was removed and added again
	wantBroken(t, configured(&j, 10, []Member{one, two}, 1, 2), &j, "members")

	j = Members{}
	wantFine(t, j.Begins(9, 1, 11, true))
	wantBroken(t, j.Begins(9, 1, 11, true), &j, "members")
	j = Members{}
	wantFine(t, j.Begins(9, 1, 11, true))
	wantBroken(t, j.Begins(9, 1, 12, false), &j, "members")
	j = Members{}
	wantFine(t, j.Begins(9, 1, 12, true))
	wantBroken(t, configured(&j, 1, []Member{one}, 1), &j, "members")
	j = Members{}
	wantFine(t, configured(&j, 3, []Member{one, two}, 1, 2))
	wantBroken(t, configured(&j, 3, []Member{one, two}, 1), &j, "members")
	j = Members{}
	wantBroken(t, configured(&j, 3, []Member{one, {4, 11}}, 1, 4), &j, "members")
}

func TestGroupsFollowTheConfiguration(t *testing.T) {
	var j Groups
	wantFine(t, j.Born(1, 100, 11, 12, 13))
	j.Configured(1, 9, []uint64{11, 14, 15}, []uint64{11, 12, 13})
	j.Configured(1, 5, []uint64{11}, nil) // an older configuration
	j.EndedEverywhere(12)
	if !j.Able(1) || j.Able(2) || j.Needless() != 0 {
		t.Fatal("one of the outgoing three is gone")
	}
	j.EndedEverywhere(13)
	if j.Able(1) {
		t.Fatal("two of the outgoing three are gone, and it is joint")
	}
	j.Configured(1, 10, []uint64{11, 14, 15}, nil)
	if !j.Able(1) {
		t.Fatal("all voters are alive")
	}
	wantBroken(t, j.Born(2, 200, 21), &j, "groups")

	j = Groups{}
	wantFine(t, j.Born(1, 100, 11, 12, 13))
	j.Configured(1, 2, []uint64{12}, nil)
	j.Ended(1, 12)
	wantFine(t, j.Born(2, 200, 21))
	if j.Needless() != 0 {
		t.Fatal("the first had lost its only voter")
	}
	j.Configured(2, 7, []uint64{22}, nil)
	_ = j.Born(3, 300, 31)
	if j.Needless() != 1 {
		t.Fatal("the second never was without a majority")
	}
}
