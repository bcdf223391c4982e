package realtime

import (
	"hash/fnv"
	"strconv"
)

// partitions is into how many slots of a Redis Cluster topics are spread. All keys of a topic, and so all its scripts and its channel, are in the
// slot of its partition, and a node listens to a partition over one connection.
const partitions = 16

// TopicKeys names what a topic has in Redis: a hash with its epoch and its last number, the stream of its last events, the channel that carries
// them, and how all its other keys begin. All have one hash tag.
func TopicKeys(topic string) (meta, stream, channel, prefix string) {
	prefix = "{seatfence-" + strconv.Itoa(partitionOf(topic)) + "}:" + topic
	return prefix + ":m", prefix + ":e", prefix + ":c", prefix
}

func partitionOf(topic string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(topic)) // never fails
	return int(h.Sum32() % partitions)
}
