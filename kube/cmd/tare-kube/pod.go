package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/tarehq/tare/kube/carry"
	"github.com/tarehq/tare/lab/fleet/certs"
)

// carryTare runs tare in a coordinator's pod and keeps what it came to.
func carryTare(ctx context.Context, args []string, _, stderr io.Writer) error {
	var o carry.Options
	flags := flag.NewFlagSet("tare-kube carry", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.Secret, "secret", "", "folder of the Secret")
	flags.StringVar(&o.Certs, "certs", "", "folder to make for certificates")
	flags.StringVar(&o.Work, "work", "", "working folder")
	flags.StringVar(&o.Keep, "keep", "", "file to keep the outcome in")
	flags.DurationVar(&o.Within, "within", time.Hour, "after which tare is interrupted")
	flags.Var((*list)(&o.Agents), "agent", "an agent, as host:port")
	flags.Var((*list)(&o.Folders), "folder", "a folder to make in the working folder")
	flags.StringVar(&o.ArmOn, "arm-on", "", "address that arms listen on")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("no program is named")
	}
	return carry.Run(ctx, o, flags.Args(), stderr)
}

// offer serves what was kept.
func offer(ctx context.Context, args []string, _, stderr io.Writer) error {
	flags := flag.NewFlagSet("tare-kube offer", flag.ContinueOnError)
	flags.SetOutput(stderr)
	secret := flags.String("secret", "", "folder of the Secret")
	dir := flags.String("certs", "", "folder to make for certificates")
	keep := flags.String("keep", "", "file that keeps the outcome")
	linger := flags.Duration("for", 10*time.Minute, "how long to offer it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := carry.CopyCerts(*secret, *dir); err != nil {
		return err
	}
	security, err := certs.Agent(*dir)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", ":"+carry.Port)
	if err != nil {
		return fmt.Errorf("offering the outcome: %w", err)
	}
	return carry.Offer(ctx, l, security, *keep, *linger)
}

// serveAgent runs tare's agent in a pod that makes load.
func serveAgent(ctx context.Context, args []string, _, stderr io.Writer) error {
	var o carry.AgentOptions
	flags := flag.NewFlagSet("tare-kube agent", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.Secret, "secret", "", "folder of the Secret")
	flags.StringVar(&o.Certs, "certs", "", "folder to make for certificates")
	flags.StringVar(&o.Config, "config", "", "file to make for the agent's configuration")
	flags.Var((*list)(&o.Allow), "allow", "a place that may be loaded, as host:port")
	flags.StringVar(&o.Arms, "arms", "", "host whose arms may be loaded")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("one program must be named")
	}
	return carry.Agent(ctx, o, flags.Arg(0), stderr)
}
