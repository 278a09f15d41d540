// SPDX-License-Identifier: Apache-2.0
// cuBLASLt by plain loops: column-major products in batches, with the two epilogues that training uses. It
// refuses shapes that do not fit each other, and offers algorithms that cannot run, as the real one does.
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "tests/kernels/cuda/emulation/libraries.h"
#include "tests/kernels/cuda/emulation/numbers.h"
#include "tests/kernels/cuda/emulation/streams.h"

struct cublasLtContext {};
struct cublasLtMatmulDescOpaque_t {
  bool transposeA = false, transposeB = false;
  int epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  cudaDataType_t biasType = CUDA_R_32F;
};
struct cublasLtMatrixLayoutOpaque_t {
  muster::cuda::Element element;
  int64_t rows, columns, leading;
  int32_t batch = 1;
  int64_t stride = 0;
  [[nodiscard]] int64_t elements() const { return (batch - 1) * stride + (columns - 1) * leading + rows; }
};
struct cublasLtMatmulPreferenceOpaque_t {};

namespace muster::emulation {
namespace {

constexpr double kOperationsPerSecond = 5e8;  ///< of the model's GPU: a product of 64 x 64 x 64 takes 1 ms

bool biasGradients = true;
uint64_t products = 0;
std::set<uint64_t> spoiledProducts;

using Description = cublasLtMatmulDescOpaque_t;
using Layout = cublasLtMatrixLayoutOpaque_t;

Element elementOf(cudaDataType_t type) {
  if (type == CUDA_R_16F) return Element::kF16;
  return type == CUDA_R_16BF ? Element::kBf16 : Element::kF32;
}

/// Algorithms are numbers in their first word.
enum Algorithm : uint64_t { kPlain, kCannotRun };

struct Product {
  Description description;
  Layout a, b, c, d;
  const void *aData, *bData, *cData;
  void* dData;
  float alpha, beta;

  [[nodiscard]] int64_t depth() const { return description.transposeA ? a.rows : a.columns; }
  [[nodiscard]] bool fits() const {
    const int64_t m = description.transposeA ? a.columns : a.rows;
    const int64_t n = description.transposeB ? b.rows : b.columns;
    const int64_t k = description.transposeB ? b.columns : b.rows;
    const auto isWhole = [](const Layout& x) { return x.leading >= x.rows; };
    const bool biasFits =
        description.epilogue != CUBLASLT_EPILOGUE_BIAS || elementOf(description.biasType) == d.element;
    return m == d.rows && n == d.columns && k == depth() && c.rows == d.rows && c.columns == d.columns &&
           isWhole(a) && isWhole(b) && isWhole(d) && a.batch == d.batch && b.batch == d.batch && biasFits;
  }
  void run() const;
  void runBatch(int64_t batch, const std::vector<float>& x, const std::vector<float>& y) const;
  void sumBias(const std::vector<float>& y) const;
};

/// Column j of d, in f64.
void Product::runBatch(int64_t batch, const std::vector<float>& x, const std::vector<float>& y) const {
  const bool ta = description.transposeA, tb = description.transposeB;
  const int64_t m = d.rows, k = depth();
  // A as k rows of m, so that the inner loop is over neighbours.
  std::vector<float> left(static_cast<size_t>(m * k));
  for (int64_t l = 0; l < k; ++l)
    for (int64_t i = 0; i < m; ++i)
      left[static_cast<size_t>(l * m + i)] =
          x[static_cast<size_t>(batch * a.stride + (ta ? i * a.leading + l : l * a.leading + i))];
  std::vector<double> sums(static_cast<size_t>(m));
  for (int64_t j = 0; j < d.columns; ++j) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (int64_t l = 0; l < k; ++l) {
      const double factor =
          y[static_cast<size_t>(batch * b.stride + (tb ? l * b.leading + j : j * b.leading + l))];
      const float* row = left.data() + l * m;
      for (int64_t i = 0; i < m; ++i) sums[static_cast<size_t>(i)] += factor * static_cast<double>(row[i]);
    }
    for (int64_t i = 0; i < m; ++i) {
      const int64_t at = batch * d.stride + j * d.leading + i;
      double value = alpha * sums[static_cast<size_t>(i)];
      if (beta != 0) value += beta * readNumber(cData, c.element, at);
      if (description.epilogue == CUBLASLT_EPILOGUE_BIAS) value += readNumber(description.bias, d.element, i);
      writeNumber(dData, d.element, at, value);
    }
  }
}

/// BGRADB: the sums of op(B) over the depth, one for each column of d.
void Product::sumBias(const std::vector<float>& y) const {
  const Element element = elementOf(description.biasType);
  for (int64_t j = 0; j < d.columns; ++j) {
    double sum = 0;
    for (int64_t l = 0; l < depth(); ++l)
      sum += y[static_cast<size_t>(description.transposeB ? l * b.leading + j : j * b.leading + l)];
    writeNumber(description.bias, element, j, sum);
  }
}

void Product::run() const {
  const std::vector<float> x = readNumbers(aData, a.element, a.elements());
  const std::vector<float> y = readNumbers(bData, b.element, b.elements());
  for (int64_t batch = 0; batch < d.batch; ++batch) runBatch(batch, x, y);
  if (description.epilogue == CUBLASLT_EPILOGUE_BGRADB) sumBias(y);
}

template <typename T>
cublasStatus_t assign(T& to, const void* value, size_t bytes) {
  if (bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t assignTranspose(bool& to, const void* value, size_t bytes) {
  cublasOperation_t operation{};
  const cublasStatus_t status = assign(operation, value, bytes);
  to = operation == CUBLAS_OP_T;
  return status;
}

}  // namespace

void offerBiasGradients(bool offer) {
  biasGradients = offer;
}
uint64_t productsQueued() {
  return products;
}
void spoilProduct(uint64_t after) {
  spoiledProducts.insert(products + after);
}

}  // namespace muster::emulation

using namespace muster::emulation;

size_t cublasLtGetVersion() {
  return 130002;
}
const char* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                               : "CUBLAS_STATUS_INVALID_VALUE";
}
const char* cublasLtGetStatusString(cublasStatus_t) {
  return "an error of the emulated cuBLASLt";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return *handle = new cublasLtContext, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return delete handle, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t,
                                        cudaDataType_t) {
  return *description = new Description, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  return delete description, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t what, const void* value,
                                              size_t bytes) {
  switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return assignTranspose(description->transposeA, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return assignTranspose(description->transposeB, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return assign(description->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return assign(description->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return assign(description->biasType, value, bytes);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;  // those of types that are not emulated
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  if (type != CUDA_R_32F && type != CUDA_R_16BF && type != CUDA_R_16F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *layout = new Layout{muster::emulation::elementOf(type), static_cast<int64_t>(rows),
                       static_cast<int64_t>(columns), leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return delete layout, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t what, const void* value,
                                                size_t bytes) {
  if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return assign(layout->batch, value, bytes);
  return assign(layout->stride, value, bytes);
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return *preference = new cublasLtMatmulPreferenceOpaque_t, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return delete preference, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t, const void*,
                                                    size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  *found = 0;
  if (description->epilogue == CUBLASLT_EPILOGUE_BGRADB && !biasGradients) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (wanted == 1) {  // the favourite can run
    *results = {{{kPlain}}, 0, CUBLAS_STATUS_SUCCESS};
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
  }
  const std::array<cublasLtMatmulHeuristicResult_t, 3> offers = {
      {{{{kPlain}}, 0, CUBLAS_STATUS_NOT_SUPPORTED},
       {{{kCannotRun}}, 0, CUBLAS_STATUS_SUCCESS},
       {{{kPlain}}, 0, CUBLAS_STATUS_SUCCESS}}};
  *found = std::min(wanted, static_cast<int>(offers.size()));
  std::copy_n(offers.begin(), *found, results);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t*,
                                                    cublasLtMatmulAlgoConfigAttributes_t, void* value,
                                                    size_t bytes, size_t* written) {
  std::memset(value, 0, bytes);
  *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t aLayout, const void* b,
                              cublasLtMatrixLayout_t bLayout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t cLayout, void* d, cublasLtMatrixLayout_t dLayout,
                              const cublasLtMatmulAlgo_t* algorithm, void*, size_t, cudaStream_t stream) {
  if (algorithm->data[0] == kCannotRun) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Product product = {*description,
                           *aLayout,
                           *bLayout,
                           *cLayout,
                           *dLayout,
                           a,
                           b,
                           c,
                           d,
                           *static_cast<const float*>(alpha),
                           *static_cast<const float*>(beta)};
  if (!product.fits()) return CUBLAS_STATUS_INVALID_VALUE;
  const double operations = 2.0 * static_cast<double>(product.d.rows) *
                            static_cast<double>(product.d.columns) * static_cast<double>(product.depth()) *
                            product.d.batch;
  const uint64_t number = ++products;
  (void)queue(
      stream,
      [product, number] {
        product.run();
        if (spoiledProducts.contains(number)) *static_cast<uint32_t*>(product.dData) ^= 0x100;
        return cudaSuccess;
      },
      operations / kOperationsPerSecond);
  return CUBLAS_STATUS_SUCCESS;
}
