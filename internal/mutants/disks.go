package mutants

// disks returns the bugs in how an instance handles and reports a disk that does not work.
func disks() []Bug {
	return []Bug{
		{Name: "broken-disk-not-told", Package: ".", Hazard: "none", Nodes: "TestAllDisksBroken",
			Breaks: "without a majority of disks every instance says that the voters answer and none is elected"},
		{Name: "disks-not-logged", Package: "internal/instance", Hazard: "none", Nodes: "TestAllDisksBroken",
			Breaks: "without a majority of disks the log says that the voters answer and none is elected"},
		{Name: "hung-disk-not-told", Package: "internal/instance", Hazard: "none",
			Nodes:  "TestABrokenDiskIsTold|TestAllDisksBroken",
			Breaks: "a voter whose disk hangs says nothing about it"},
		{Name: "disk-not-reported", Package: "internal/instance", Hazard: "none", Nodes: "TestABrokenDiskIsTold",
			Breaks: "the leader says that it does not hear of a voter, and not that its disk has failed"},
		{Name: "stop-any-with-a-faulty-disk", Package: ".", Hazard: "none", Nodes: "TestTwoRemovedDirectories",
			Breaks: "Health says that any one instance may be stopped while a restart of one loses the majority"},
		{Name: "storage-failure-twice", Package: "internal/instance", Hazard: "none", Nodes: "TestABrokenDiskIsTold",
			Breaks: "one failure of a disk is several ERROR lines"},
		{Name: "removed-directory-unnoticed", Package: "raftlog/storage", Hazard: "none",
			Nodes:  "TestARemovedDirectoryIsNoticed",
			Breaks: "a voter whose directory was removed votes on, and its next restart takes a vote away"},
		{Name: "removed-directory-votes-on", Package: "internal/instance", Hazard: "none",
			Nodes:  "TestARemovedDirectoryIsNoticed",
			Breaks: "a voter whose directory was removed acknowledges what is gone with its process"},
		{Name: "vote-yielded-without-majority", Package: "internal/instance", Hazard: "none",
			Nodes:  "TestTwoRemovedDirectories",
			Breaks: "voters that have lost their directories give up their votes all at once, and the group its majority"},
		{Name: "empty-replica-is-a-well-disk", Package: "internal/instance", Hazard: "none",
			Nodes:  "TestADiskThatStaysFull",
			Breaks: "a disk that stays full is told as well each minute, and is another ERROR line then"},
		{Name: "idle-disk-unnoticed", Package: "raftlog/storage", Hazard: "none", Nodes: "TestAnIdleVoterNoticesItsDisk",
			Breaks: "a voter with nothing to write does not know that its disk is broken"},
		{Name: "stop-any-with-a-full-disk", Package: ".", Hazard: "none", Nodes: "TestAFullDiskIsForetold",
			Breaks: "while a disk is almost full any other instance may be stopped, and the next write ends the majority"},
		{Name: "full-disk-not-foretold", Package: "internal/instance", Hazard: "none", Nodes: "TestAFullDiskIsForetold",
			Breaks: "nothing is said before a disk is full"},
	}
}
