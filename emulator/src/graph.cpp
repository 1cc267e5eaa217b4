// Launches and graphs: checking a launch, running or recording it, replaying what was recorded.
#include <cstring>
#include <string>

#include "block.h"
#include "cluster.h"
#include "fault.h"
#include "observer.h"
#include "shared_memory.h"
#include "stream.h"

namespace emulator {

namespace {

cudaError_t refuse(cudaError_t error, const std::string& sentence) {
  record_refused_launch("launch: " + sentence);
  return report_error(error);
}

std::string describe(dim3 dim) {
  return "(" + std::to_string(dim.x) + "," + std::to_string(dim.y) + "," + std::to_string(dim.z) +
         ")";
}

// What the hardware refuses, with the error that it gives.
cudaError_t check_shape(dim3 grid, dim3 block, std::size_t smem_bytes) {
  constexpr unsigned kMaxGridX = 0x7fffffff;
  constexpr unsigned kMaxGridYz = 65535;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
    return refuse(cudaErrorInvalidConfiguration, "the grid " + describe(grid) + " is empty");
  }
  if (grid.x > kMaxGridX || grid.y > kMaxGridYz || grid.z > kMaxGridYz) {
    return refuse(cudaErrorInvalidConfiguration,
                  "the grid " + describe(grid) + " is larger than (2147483647,65535,65535)");
  }
  if (threads == 0) {
    return refuse(cudaErrorInvalidConfiguration, "the block " + describe(block) + " is empty");
  }
  if (block.x > kMaxThreads || block.y > kMaxThreads || block.z > 64 || threads > kMaxThreads) {
    return refuse(cudaErrorInvalidConfiguration,
                  "the block " + describe(block) +
                      " is larger than (1024,1024,64) or has more than 1024 threads");
  }
  if (smem_bytes > kMaxSharedBytes) {
    return refuse(cudaErrorInvalidValue, std::to_string(smem_bytes) +
                                             " bytes of dynamic shared memory; the limit is " +
                                             std::to_string(kMaxSharedBytes));
  }
  return cudaSuccess;
}

cudaError_t check_clusters(dim3 grid, int cluster_size) {
  if (cluster_size < 1 || cluster_size > kMaxClusterBlocks) {
    return refuse(cudaErrorInvalidClusterSize,
                  "clusters of " + std::to_string(cluster_size) + " blocks; 1 to 8 are possible");
  }
  if (grid.x % static_cast<unsigned>(cluster_size) != 0) {
    return refuse(cudaErrorInvalidConfiguration, "the grid " + describe(grid) +
                                                     " is not made of whole clusters of " +
                                                     std::to_string(cluster_size) + " blocks");
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t launch(const KernelCall& call,
                   dim3 grid,
                   dim3 block,
                   std::size_t smem_bytes,
                   cudaStream_t stream,
                   int cluster_size) {
  if (t_block != nullptr) t_block->fail("launch", "kernels that start kernels are not offered", {});
  if (const cudaError_t sticky = sticky_error()) return sticky;
  forget_refused_launch();
  const cudaError_t shape = check_shape(grid, block, smem_bytes);
  if (shape != cudaSuccess) return shape;
  const cudaError_t clusters = check_clusters(grid, cluster_size);
  if (clusters != cudaSuccess) return clusters;
  GraphNodes* nodes = nullptr;
  const cudaError_t error = enter_stream(stream, CallKind::kWork, &nodes);
  if (error == cudaErrorInvalidResourceHandle) return refuse(error, "there is no such stream");
  if (error != cudaSuccess) return report_error(error);
  if (nodes == nullptr) return run_grid({&call, grid, block, smem_bytes, cluster_size});
  auto node = std::make_shared<GraphNode>();
  node->kind = GraphNode::Kind::kKernel;
  node->call.reset(call.clone());
  node->grid = {node->call.get(), grid, block, smem_bytes, cluster_size};
  nodes->push_back(std::move(node));
  return cudaSuccess;
}

cudaError_t run_node(const GraphNode& node) {
  Observer* const watching = observer();
  if (watching != nullptr && node.kind != GraphNode::Kind::kKernel) {
    watching->host_writes(node.to, node.bytes);
  }
  switch (node.kind) {
    case GraphNode::Kind::kKernel:
      return run_grid(node.grid);
    case GraphNode::Kind::kCopy:
      std::memmove(node.to, node.from, node.bytes);
      return cudaSuccess;
    case GraphNode::Kind::kFill:
      std::memset(node.to, node.value, node.bytes);
      return cudaSuccess;
  }
  return cudaErrorUnknown;
}

}  // namespace emulator

using emulator::report_error;

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable,
                                 cudaGraph_t graph,
                                 unsigned long long) {
  if (const cudaError_t sticky = emulator::sticky_error()) return sticky;
  if (executable == nullptr || graph == nullptr) return report_error(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st{graph->nodes};
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (executable == nullptr) return report_error(cudaErrorInvalidValue);
  emulator::GraphNodes* nodes = nullptr;
  const cudaError_t error = emulator::enter_stream(stream, emulator::CallKind::kWork, &nodes);
  if (error != cudaSuccess) return report_error(error);
  if (nodes != nullptr) {
    nodes->insert(nodes->end(), executable->nodes.begin(), executable->nodes.end());
    return cudaSuccess;
  }
  for (const auto& node : executable->nodes) {
    const cudaError_t failed = emulator::run_node(*node);
    if (failed != cudaSuccess) return failed;
  }
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (graph == nullptr) return report_error(cudaErrorInvalidValue);
  delete graph;
  return emulator::sticky_error();
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  if (executable == nullptr) return report_error(cudaErrorInvalidValue);
  delete executable;
  return emulator::sticky_error();
}
