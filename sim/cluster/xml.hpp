// SPDX-License-Identifier: Apache-2.0
// A strict reader for the XML that NCCL writes: elements and attributes, no text between them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dipsim {

struct XmlElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<XmlElement> children;
  int line = 0;  ///< of its "<", from 1
  int column = 0;

  /// The value of an attribute; null where there is none.
  [[nodiscard]] const std::string* find(std::string_view attribute) const;
};

/// The root element. Comments and the <?xml …?> line are skipped; the five predefined entities are
/// resolved. Throws Input, naming file, line and column: text between elements, an element that is
/// never closed (a file that was cut off), a closing tag of another name, an attribute twice, other
/// markup (<!DOCTYPE, <![CDATA[), nesting deeper than 64, anything after the root.
XmlElement parse_xml(std::string_view text, const std::string& file);

}  // namespace dipsim
