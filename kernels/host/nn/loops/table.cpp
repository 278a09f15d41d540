// SPDX-License-Identifier: Apache-2.0
// The table of one instruction set and one type in memory.
#include "kernels/host/nn/loops/tables.h"

#define MUSTER_TEXT_INNER(name) #name
#define MUSTER_TEXT(name) MUSTER_TEXT_INNER(name)

namespace muster::host::MUSTER_ISA::MUSTER_STORED {

const Loops kTable = {MUSTER_TEXT(MUSTER_ISA),
                      batchNormTrain,
                      batchNormEvaluate,
                      batchNormBackward,
                      reluForward,
                      reluBackward,
                      maxPoolForward,
                      maxPoolBackward,
                      averagePoolForward,
                      averagePoolBackward,
                      addTo,
                      addRow,
                      embedRow,
                      rowsToF32,
                      rowsFromF32,
                      geluForward,
                      geluBackward,
                      layerNormForward,
                      layerNormBackward,
                      crossEntropy,
                      softmaxBlock,
                      softmaxAgain,
                      softmaxBackward,
                      sgd,
                      adam};

}  // namespace muster::host::MUSTER_ISA::MUSTER_STORED
