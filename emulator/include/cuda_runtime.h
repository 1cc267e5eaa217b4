// Stands in for CUDA's header of the same name: the part of it that the drills use, on the CPU.
#pragma once

#include <emulator/atomics.h>
#include <emulator/device_math.h>
#include <emulator/language.h>
#include <emulator/runtime_api.h>
#include <emulator/warp.h>
#include <vector_types.h>
