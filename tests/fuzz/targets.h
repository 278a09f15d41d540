// SPDX-License-Identifier: Apache-2.0
// What reads bytes of strangers (network, environment, other programs, files), and what must hold of it
// whatever they are. Each check takes one input and says what does not hold, or nothing.
#pragma once

#include <string>
#include <vector>

#include "runner/core/result.h"
#include "tests/fuzz/document_mutator.h"
#include "tests/fuzz/mutate_run.h"

namespace muster::testing {

/// Well-formed inputs of a check: bytes, and pieces that are worth putting into them; or documents, which are
/// changed field by field.
struct Samples {
  std::vector<std::string> seeds;
  std::vector<std::string> words;
  std::vector<Json> documents = {};
  DocumentFormat format = DocumentFormat::kJson;
};

/// One request of the rendezvous store, without its length.
std::string checkStoreRequest(const std::string& body);
Samples storeRequestSamples();
/// All that a client of the store sends after its handshake, and the same bytes from one without.
std::string checkStoreStream(const std::string& bytes);
Samples storeStreamSamples();
/// A Slurm host list.
std::string checkHostList(const std::string& text);
Samples hostListSamples();

/// All that a rank writes on its frame descriptor.
std::string checkFrames(const std::string& bytes);
Samples frameSamples();
/// What perftest prints: the first byte chooses bandwidth or latency.
std::string checkPerftest(const std::string& bytes);
Samples perftestSamples();

/// A file of another tool's results, as `muster import` reads it.
std::string checkImport(const std::string& text);
Samples importTextSamples();
Samples importJsonSamples();

/// A file of CIFAR: the first byte chooses CIFAR-10 or CIFAR-100.
std::string checkCifar(const std::string& bytes);
Samples cifarSamples();
/// A file of FashionMNIST: the first byte chooses images or labels, plain or gzipped.
std::string checkFashionMnist(const std::string& bytes);
Samples fashionMnistSamples();
std::string checkJpeg(const std::string& bytes);
Samples jpegSamples();
/// A data set's tar archive.
std::string checkTar(const std::string& bytes);
Samples tarSamples();

/// One of the above, or a schema's documents and all that reads them (documents.cpp), by its name.
struct Target {
  const char* name;
  InputCheck check;
  Samples (*samples)();
};
const std::vector<Target>& targets();  ///< of this program: targets.cpp or documents.cpp

}  // namespace muster::testing
