package devstack

import (
	"fmt"
	"strings"
	"testing"
)

func TestClusterIsWholeAndSurvivesARestartOfAMaster(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Options{Dir: t.TempDir(), Packages: "../../.data/packages", Cluster: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	addr := s.Cluster[2].redisAddr()
	if _, err := redisCommand(t.Context(), addr, "SET foo 1"); err != nil { // slot 12182
		t.Error(err)
	}
	if _, err := redisCommand(t.Context(), s.Cluster[0].redisAddr(), "SET foo 1"); err == nil || !strings.Contains(err.Error(), "MOVED") {
		t.Errorf("a master that has not the slot says %v", err)
	}
	if err := s.Cluster[2].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Cluster[2].Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if info, err := redisCommand(t.Context(), addr, "CLUSTER INFO"); err != nil || !strings.Contains(info, fmt.Sprint("cluster_known_nodes:", clusterMasters)) {
		t.Errorf("%s, %v", info, err)
	}
}
