// SPDX-License-Identifier: Apache-2.0
// Stands in for a header of Gloo that Debian's package leaves out, though others of its headers include it. Searched
// last, so where the real one is installed, that is used. Here is only what a derived pair needs: names, and the size of
// a weak reference within gloo::transport::tcp::Pair.
#pragma once

#include <memory>

namespace gloo {

template <typename T>
class NonOwningPtr;
template <typename T>
class ShareableNonOwningPtr;

template <typename T>
class WeakNonOwningPtr {
 private:
  std::weak_ptr<T> reference_;
};

}  // namespace gloo
