package variant

import (
	"context"
	"errors"
	"os"
	"time"
)

// ProfileVariable names, in the environment of a program that was built to be
// profiled, the file for its CPU profile of ten seconds. [AwaitProfile] has the program
// begin.
const ProfileVariable = "TARE_PGO"

// The profile's file with these endings tells the program to begin, and tare why there
// will be no profile.
const (
	begins = ".begin"
	fails  = ".error"
)

// profileSource is added to package main: it needs nothing but the standard library. The
// names of its imports are its own. Each process of a program has a file of its own until
// it is whole.
const profileSource = `package main

import (
	tareOS "os"
	tarePprof "runtime/pprof"
	tareStrconv "strconv"
	tareTime "time"
)

// Added by tare for one build, which takes the profile for another.
func init() {
	name := tareOS.Getenv("` + ProfileVariable + `")
	if name == "" {
		return
	}
	go func() {
		for _, err := tareOS.Stat(name + "` + begins + `"); err != nil; _, err = tareOS.Stat(name + "` + begins + `") {
			tareTime.Sleep(50 * tareTime.Millisecond)
		}
		part := name + "." + tareStrconv.Itoa(tareOS.Getpid())
		f, err := tareOS.Create(part)
		if err == nil {
			err = tarePprof.StartCPUProfile(f)
		}
		if err != nil {
			tareOS.WriteFile(name+"` + fails + `", []byte(err.Error()), 0o644)
			return
		}
		tareTime.Sleep(10 * tareTime.Second)
		tarePprof.StopCPUProfile()
		if f.Close() == nil {
			tareOS.Rename(part, name)
		}
	}()
}
`

// AwaitProfile has a program that runs with a path in [ProfileVariable] take its profile,
// and waits until it is there. The folder must hold nothing else of that name. The error is
// the cause of the context's end, or why the program can take none.
func AwaitProfile(ctx context.Context, path string) error {
	if err := os.WriteFile(path+begins, nil, 0o644); err != nil {
		return err
	}
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		if why, err := os.ReadFile(path + fails); err == nil && len(why) > 0 {
			return errors.New("the program reports: " + string(why))
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// addProfile compiles with the profile, or so that the program takes one.
func (a *applier) addProfile() error {
	if a.Profile == "" {
		a.build.Flags = append(a.build.Flags, "-pgo=off")
		return a.addSource("tare_profile.go", profileSource)
	}
	if _, err := os.Stat(a.Profile); err != nil {
		return err
	}
	a.build.Flags = append(a.build.Flags, "-pgo="+a.Profile)
	return nil
}
