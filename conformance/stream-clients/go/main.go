// Follows the drain of one maintenance on Drydock's status stream, prints it as it goes, and ends when the maintenance
// has been deleted: go run . ADDRESS CA_FILE SERVER_NAME TOKEN_FILE MAINTENANCE
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "drydock.dev/conformance/stream-clients/statusv1alpha1"
)

func main() {
	address, ca, server, tokenFile, name := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	tls, noCA := credentials.NewClientTLSFromFile(ca, server)
	token, noToken := os.ReadFile(tokenFile)
	connection, noConnection := grpc.NewClient(address, grpc.WithTransportCredentials(tls))
	if err := errors.Join(noCA, noToken, noConnection); err != nil {
		log.Fatal(err)
	}
	bearer := metadata.Pairs("authorization", "Bearer "+strings.TrimSpace(string(token)))
	ctx := metadata.NewOutgoingContext(context.Background(), bearer)
	client, options, last := pb.NewStatusServiceClient(connection), &pb.WatchOptions{}, &pb.Maintenance{}
	for {
		stream, err := client.WatchMaintenances(ctx, &pb.WatchMaintenancesRequest{Maintenance: name, Options: options})
		for err == nil {
			var response *pb.WatchMaintenancesResponse
			if response, err = stream.Recv(); response.GetUpdated() != nil {
				last = show(response.GetUpdated())
			} else if response.GetRemoved() != nil {
				o, left := last.GetOutcomes(), last.PodsPending+last.PodsEvicting
				fmt.Printf("final evicted=%d canceled=%d passed_over=%d returned=%d drained_nodes=%d left=%d\n",
					o.GetEvicted(), o.GetCanceled(), o.GetPassedOver(), o.GetReturned(), last.DrainedNodes, left)
				return
			}
			if err == nil {
				options.ResumeToken = response.ResumeToken
			}
		}
		if code := status.Code(err); code == codes.OutOfRange {
			options.ResumeToken = nil // Too long away: what there is now takes the place of everything.
		} else if code != codes.Unavailable {
			log.Fatal(err)
		}
		time.Sleep(time.Second) // A server that restarts: go on after the last response.
	}
}

func show(m *pb.Maintenance) *pb.Maintenance {
	fmt.Printf("%s %s", m.Name, m.Stage)
	if m.CurrentEntry != nil {
		fmt.Printf(" entry %d of %d", m.CurrentEntryIndex+1, m.Entries)
	}
	fmt.Printf(": %d pending, %d evicting, %d blocked; %d of %d nodes drained\n",
		m.PodsPending, m.PodsEvicting, m.Blocked, m.DrainedNodes, m.Nodes)
	for _, b := range m.Blockers {
		fmt.Printf("  %s/%s on %s: %s: %s\n", b.PodNamespace, b.PodName, b.Node, b.Reason, b.Message)
	}
	return m
}
