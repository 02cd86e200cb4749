"use strict";
// Data: <script type="application/json" class="page"> of each page {source, page, angle, width, height, image, tables},
// and #settings {doubt, safe, key} with the patterns of formulas and numbers.  A page's `values` have for each cell a
// number and its format, or null, and its `marks` the decimal mark of each column.  A cell is {row, column, row_span, column_span, box, text, confidence, ...} as in a
// table's JSON, with `doubts` where there are any.
const $ = (id) => document.getElementById(id);
const settings = JSON.parse($("settings").textContent);
const pages = [...document.querySelectorAll("script.page")].map((node) => JSON.parse(node.textContent));
const tables = pages.flatMap((page) => page.tables.map((table, i) => ({ page, table, number: i + 1 })));
const KEY = "zoo-review-" + settings.key;
const ORIGINS = { model: "the network", rules: "the lines of the PDF", ink: "the lines in the picture" };
const edits = new Map(); // "table:cell" -> text
let at = 0; // table
let here = 0; // cell
let rects = [], boxes = [];

function remembered(store) {
  try {
    if (store === undefined) return JSON.parse(localStorage.getItem(KEY) || "[]");
    localStorage.setItem(KEY, JSON.stringify(store));
  } catch (e) { /* a browser that keeps nothing for files */ }
  return [];
}

const cellsOf = (t) => tables[t]?.table.cells;
const textOf = (t, c) => edits.get(t + ":" + c) ?? cellsOf(t)[c].text;
const reasonsOf = (cell) => (cell.doubts || []).concat(cell.confidence < settings.doubt ? ["the models are unsure"] : []);
const isDoubtful = (t, c) => reasonsOf(cellsOf(t)[c]).length > 0 && !edits.has(t + ":" + c);
const doubtsOf = (t) => cellsOf(t).map((_, c) => c).filter((c) => isDoubtful(t, c))
  .sort((a, b) => reasonsOf(cellsOf(t)[b]).length - reasonsOf(cellsOf(t)[a]).length || cellsOf(t)[a].confidence - cellsOf(t)[b].confidence);
const ofTable = (t) => tables[t].table.doubts || [];
const weight = (t) => ofTable(t).length + doubtsOf(t).length;
const NUMBER = /^[-+\u2212\u2013(<>~\u00b1]*\s*[$\u20ac\u00a3\u00a5]?\s*[\d.,\u2019' \u00a0\u202f]*\d[\d.,]*\s*[%\u2030\u20ac$)*]*$/;
const nameOf = (t) => (pages.length > 1 || tables[t].page.pages > 1 ? "page " + tables[t].page.page + ", " : "") + "table " + tables[t].number;
const sources = new Set(pages.map((page) => page.source));
const sourceOf = (t) => (sources.size > 1 ? tables[t].page.source.split(/[\\/]/).pop() + ", " : "");
const file = (t) => tables[t].page.source.split(/[\\/]/).pop().replace(/\.[^.]*$/, "");

function element(tag, options, parent) {
  const node = Object.assign(document.createElement(tag), options);
  if (parent) parent.append(node);
  return node;
}

function show(t, cell = Math.max(0, cellsOf(t)?.findIndex((one) => one.text))) {
  if (!tables.length) { $("status").textContent = "No tables were found."; return; }
  at = t;
  const { page, table } = tables[t];
  $("title").title = page.source;
  $("title").textContent = page.source.split(/[\\/]/).pop() + (page.pages > 1 ? ", page " + page.page : "")
    + (page.angle ? ", shown upright (its text is turned by " + Math.round(page.angle * 100) / 100 + "°)" : "");
  document.title = nameOf(t) + " - " + page.source;
  $("choice").value = String(t);
  $("before").disabled = t === 0;
  $("after").disabled = t === tables.length - 1;
  $("image").src = page.image;
  $("image").alt = "Page " + page.page + " of " + page.source;
  drawMarks(page, table);
  drawCells(t, table);
  drawDoubts(t);
  select(cell, false);
  zoom(false);
  shrinkToFit();
  hints();
}

// The picture is as wide as its frame; on a phone the table is, and the button enlarges both.
function zoom(large) {
  const { page, table } = tables[at], [x0, y0, x1] = table.box, phone = matchMedia("(max-width: 52rem)").matches;
  const near = page.width / (1.15 * (x1 - x0)), fit = phone && near > 1.3 ? Math.min(3, near) : 1;
  $("sheet").style.width = 100 * fit * (large ? 2.5 : 1) + "%";
  $("zoom").textContent = large ? "\u2212" : "+";
  $("zoom").title = large ? "Fit the picture" : "Enlarge the picture";
  $("page").scrollLeft = (x0 / page.width) * $("sheet").offsetWidth - 8;
  $("page").scrollTop = Math.max(0, (y0 / page.height) * $("sheet").offsetHeight - 20);
}

// Smaller letters, down to eleven pixels, where all columns are seen at once with them.
function shrinkToFit() {
  const view = $("cells");
  for (const size of [15, 14, 13, 12, 11]) {
    view.style.setProperty("--size", size + "px");
    view.classList.toggle("tight", size < 13);
    if (view.scrollWidth <= view.clientWidth) return;
  }
  view.style.removeProperty("--size");
  view.classList.remove("tight");
}

// Shadows where the cells go on beyond the edge, and a line that says so.
function hints() {
  const view = $("cells"), more = view.scrollWidth - view.clientWidth;
  view.classList.toggle("before", view.scrollLeft > 2);
  view.classList.toggle("after", view.scrollLeft < more - 2);
  $("wide").hidden = more <= 2;
  if (boxes.length) $("wide").textContent = tables[at].table.column_boxes.length + " columns: scroll sideways to see them all";
}

function drawMarks(page, table) {
  const svg = $("marks");
  svg.setAttribute("viewBox", "0 0 " + page.width + " " + page.height);
  svg.replaceChildren();
  const rect = ([x0, y0, x1, y1], kind) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of Object.entries({ x: x0, y: y0, width: x1 - x0, height: y1 - y0 })) node.setAttribute(name, value);
    node.setAttribute("class", kind);
    svg.append(node);
    return node;
  };
  rects = table.cells.map((cell, c) => {
    const node = rect(cell.box, isDoubtful(at, c) ? "doubt" : "");
    node.addEventListener("mouseenter", () => hover(c, true));
    node.addEventListener("mouseleave", () => hover(c, false));
    node.addEventListener("click", () => { select(c); boxes[c].focus(); });
    return node;
  });
  for (const word of table.outside || []) rect(word.box, "outside");
}

function drawCells(t, table) {
  const node = element("table", {});
  boxes = [];
  const numeric = table.column_boxes.map((_, k) => {
    const texts = table.cells.filter((cell) => !cell.is_header && cell.column === k && cell.column_span === 1 && cell.text.trim());
    return texts.length > 0 && texts.filter((cell) => NUMBER.test(cell.text.trim())).length >= 0.6 * texts.length;
  });
  const rows = table.row_boxes.map((_, r) => element("tr", {}, r < table.header_rows ? (node.tHead || node.createTHead()) : (node.tBodies[0] || node.createTBody())));
  table.cells.forEach((cell, c) => {
    const box = element(cell.is_header ? "th" : "td", { rowSpan: cell.row_span, colSpan: cell.column_span, tabIndex: -1 }, rows[cell.row]);
    box.textContent = textOf(t, c);
    box.title = [...reasonsOf(cell), "confidence " + Math.round(cell.confidence * 100) + " %, borders from " + ORIGINS[cell.origin]].join("\n");
    box.classList.toggle("number", cell.column_span === 1 && numeric[cell.column]);
    box.addEventListener("mouseenter", () => hover(c, true));
    box.addEventListener("mouseleave", () => hover(c, false));
    box.addEventListener("click", () => { if (!box.isContentEditable) { select(c); edit(c); } });
    box.addEventListener("blur", () => keep(c));
    boxes.push(box);
    mark(c);
  });
  $("cells").replaceChildren(node);
}

function drawDoubts(t) {
  const all = doubtsOf(t), outside = tables[t].table.outside || [];
  $("doubts").replaceChildren();
  for (const reason of ofTable(t)) element("h2", { textContent: "This table: " + reason }, $("doubts"));
  const groups = new Map();
  for (const c of all.slice(0, 60)) for (const reason of reasonsOf(cellsOf(t)[c]).slice(0, 1)) groups.set(reason, [...(groups.get(reason) || []), c]);
  if (all.length) element("h2", { textContent: all.length + (all.length === 1 ? " doubtful cell" : " doubtful cells") }, $("doubts"));
  for (const [reason, cells] of groups) {
    element("p", { className: "reason", textContent: reason }, $("doubts"));
    const list = element("ol", {}, $("doubts"));
    for (const c of cells) {
      const cell = cellsOf(t)[c];
      const label = (cell.confidence < settings.doubt ? Math.round(cell.confidence * 100) + " %  " : "") + (textOf(t, c) || "(empty)");
      const title = ["row " + (cell.row + 1) + ", column " + (cell.column + 1), ...reasonsOf(cell)].join("\n");
      const button = element("button", { textContent: label, title }, element("li", {}, list));
      button.addEventListener("click", () => { select(c); boxes[c].focus(); });
    }
  }
  if (outside.length) {
    element("h2", { textContent: outside.length + (outside.length === 1 ? " word" : " words") + " in no cell" }, $("doubts"));
    element("p", { className: "faint", textContent: outside.map((word) => word.text).join(" ") }, $("doubts"));
  }
  const left = tables.reduce((sum, _, i) => sum + weight(i), 0);
  $("doubtful").textContent = left ? "Doubtful: " + left : "Nothing doubtful";
  $("doubtful").disabled = !left;
  $("undo").disabled = !cellsOf(t).some((_, c) => edits.has(t + ":" + c));
  for (const option of $("choice").options) option.textContent = sourceOf(+option.value) + nameOf(+option.value) + (weight(+option.value) ? "  (" + weight(+option.value) + ")" : "");
}

function mark(c) {
  const doubt = isDoubtful(at, c);
  boxes[c].classList.toggle("doubt", doubt);
  boxes[c].classList.toggle("edited", edits.has(at + ":" + c));
  if (rects[c]) rects[c].classList.toggle("doubt", doubt);
}

function hover(c, on) {
  boxes[c].classList.toggle("here", on || c === here);
  rects[c].classList.toggle("here", on || c === here);
}

function select(c, scroll = true) {
  if (!boxes.length) return;
  const old = here;
  here = Math.min(c, boxes.length - 1);
  if (boxes[old]) { hover(old, false); boxes[old].tabIndex = -1; }
  hover(here, true);
  boxes[here].tabIndex = 0;
  if (scroll) {
    boxes[here].scrollIntoView({ block: "nearest", inline: "nearest" });
    const [x0, y0] = cellsOf(at)[here].box, view = $("page");
    const x = (x0 / tables[at].page.width) * $("sheet").offsetWidth, y = (y0 / tables[at].page.height) * $("sheet").offsetHeight;
    if (x < view.scrollLeft || x > view.scrollLeft + view.clientWidth - 40) view.scrollLeft = x - view.clientWidth / 3;
    if (y < view.scrollTop || y > view.scrollTop + view.clientHeight - 40) view.scrollTop = y - view.clientHeight / 3;
  }
}

function edit(c) {
  const box = boxes[c];
  box.contentEditable = "plaintext-only";
  if (box.contentEditable !== "plaintext-only") box.contentEditable = "true";
  box.focus();
  getSelection().selectAllChildren(box);
}

// checked: the reader has confirmed the text, changed or not, which settles a doubt.
function keep(c, checked = false) {
  const box = boxes[c];
  if (!box || !box.isContentEditable) return;
  box.contentEditable = "false";
  const text = box.innerText.replace(/\u00a0/g, " ").replace(/\n$/, ""), key = at + ":" + c;
  if (text !== textOf(at, c) || (checked && isDoubtful(at, c))) edits.set(key, text);
  box.textContent = textOf(at, c);
  changed(c);
}

function changed(c) {
  remembered([...edits]);
  mark(c);
  drawDoubts(at);
}

function nextDoubt(step) {
  const all = tables.flatMap((_, t) => cellsOf(t).map((_, c) => [t, c])
    .filter(([t, c]) => isDoubtful(t, c) || (c === 0 && ofTable(t).length && !doubtsOf(t).length)));
  if (!all.length) return;
  const after = ([t, c]) => t > at || (t === at && c > here), before = ([t, c]) => t < at || (t === at && c < here);
  const [t, c] = step > 0 ? all.find(after) || all[0] : all.findLast(before) || all[all.length - 1];
  if (t !== at) show(t, c);
  select(c);
  boxes[c].focus();
}

function move(down, right) {
  const cell = cellsOf(at)[here];
  const row = down > 0 ? cell.row + cell.row_span : cell.row + down, column = right > 0 ? cell.column + cell.column_span : cell.column + right;
  const to = cellsOf(at).findIndex((one) => one.row <= row && row < one.row + one.row_span && one.column <= column && column < one.column + one.column_span);
  if (to >= 0) { select(to); boxes[to].focus(); }
}

function grid(t) {
  const { table } = tables[t];
  const rows = table.row_boxes.map(() => table.column_boxes.map(() => ""));
  table.cells.forEach((cell, c) => {
    for (let r = cell.row; r < cell.row + cell.row_span; r++) for (let k = cell.column; k < cell.column + cell.column_span; k++) rows[r][k] = textOf(t, c);
  });
  return rows;
}

// A text with an apostrophe before each part that a spreadsheet program could run: zoo.apps.batch.formulas.escape_formulas.
const HARMLESS = new RegExp("^(?:" + settings.harmless + ")$", "u"), PARTS = new RegExp(settings.parts);
function harmless(text) {
  const isFormula = (part) => {
    const seen = [...part], from = seen.findIndex((c) => !/[\p{C}\p{M}\p{Z}]/u.test(c) && !settings.blank.includes(c));
    if (from < 0) return false;
    const begin = seen[from].normalize("NFKC")[0];
    return settings.formula.includes(begin) && !HARMLESS.test(seen.slice(from).join("").replace(/ +$/, ""));
  };
  const begin = text.replace(/^ +/, "")[0];
  const split = begin !== undefined && begin !== ";" && PARTS.test(begin);
  return (split ? "'" : "") + text.split(PARTS).map((part, i) => (i % 2 === 0 && isFormula(part) ? "'" + part : part)).join("");
}

function csv(t) {
  const all = settings.safe && grid(t).flat().some((text) => settings.formula.includes(text[0]) || PARTS.test(text) || harmless(text) !== text);
  const field = (text) => {
    if (settings.safe) text = harmless(text);
    return all || /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  };
  return grid(t).map((row) => (row.length === 1 && row[0] === "" ? '""' : row.map(field).join(",")) + "\r\n").join("");
}

function html() {
  const shown = document.implementation.createHTMLDocument("Tables");
  shown.head.prepend(Object.assign(shown.createElement("meta"), { content: "text/html; charset=utf-8", httpEquiv: "Content-Type" }));
  tables.forEach(({ page, table }, t) => {
    const node = shown.body.appendChild(shown.createElement("table"));
    node.createCaption().textContent = page.source + ", " + nameOf(t);
    const rows = table.row_boxes.map((_, r) => (r < table.header_rows ? node.tHead || node.createTHead() : node.tBodies[0] || node.createTBody()).insertRow());
    table.cells.forEach((cell, c) => {
      const box = rows[cell.row].appendChild(shown.createElement(cell.is_header || cell.is_projected_row_header ? "th" : "td"));
      if (cell.row_span > 1) box.rowSpan = cell.row_span;
      if (cell.column_span > 1) box.colSpan = cell.column_span;
      box.textContent = textOf(t, c);
    });
  });
  return "<!DOCTYPE html>\n" + shown.documentElement.outerHTML + "\n";
}

// The number in a text that was edited, and its format: zoo.apps.tables.values.parse_number and number_format.
const NUMERAL = new RegExp("^(?:" + settings.number + ")$", "u");
function numberOf(text, mark) {
  if (!mark) { // 1.204 may be 1204
    const point = numberOf(text, "."), comma = numberOf(text, ",");
    return point && comma && point[1].includes(".") ? null : point || comma;
  }
  const found = NUMERAL.exec(text.trim())?.groups, other = mark === "," ? "." : ",";
  if (!found || !found.open !== !found.close || (found.sign && (found.sign2 || found.open)) || (found.sign2 && found.open)) return null;
  const [whole, decimals, ...more] = found.digits.split(mark);
  const groups = whole.split(/[^0-9]/), marks = new Set(whole.match(/[^0-9]/g));
  const threes = groups.slice(1).every((group) => group.length === 3) && groups[0].length >= 1 && groups[0].length <= 3 && marks.size === 1;
  if (more.length || !/^[0-9]*$/.test(decimals ?? "") || decimals === "" || marks.has(mark) || (groups.length > 1 && !threes)) return null;
  const digits = groups.join(""), sign = found.sign || found.sign2 || "";
  if ((digits.length > 1 && digits[0] === "0") || digits.length + (decimals ?? "").length > settings.digits) return null;
  const size = Number((digits || "0") + "." + (decimals ?? "0") + (found.percent ? "e-2" : ""));
  const money = found.before ? '"' + found.before + (found.before.length > 1 ? " " : "") + '"' : "";
  const shape = money + (groups.length > 1 ? "#,##0" : "0") + (decimals ? "." + "0".repeat(decimals.length) : "") + (found.percent ? "%" : "") + (found.after ? '" ' + found.after + '"' : "");
  return [(sign && settings.minus.includes(sign)) || found.open ? -size : size, found.open ? shape + ";(" + shape + ")" : sign === "+" ? "+" + shape + ";-" + shape : shape];
}

function valueOf(t, c) {
  const { page, table, number } = tables[t], cell = table.cells[c];
  if (!edits.has(t + ":" + c)) return page.values[number - 1][c];
  return cell.is_header ? null : numberOf(textOf(t, c), page.marks[number - 1][cell.column]);
}

// XLSX: an uncompressed zip of six kinds of XML.  Styles: the first is that of texts, the second that of headers.
function xlsx() {
  const xml = (text) => text.replace(/[\0-\x08\x0b-\x1f\ufffe\uffff]/g, "").replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
  const letters = (n) => (n < 26 ? "" : letters(Math.floor(n / 26) - 1)) + String.fromCharCode(65 + (n % 26));
  const place = (row, column) => letters(column) + (row + 1);
  const head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n', main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
  const office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships", relations = "http://schemas.openxmlformats.org/package/2006/relationships";
  const types = "application/vnd.openxmlformats-officedocument.spreadsheetml.";
  const names = tables.map(({ page, number }, t) => (t + 1 + " Page " + page.page + " Table " + number).slice(0, 31));
  const formats = [];
  const styleOf = (format) => (formats.includes(format) ? formats.indexOf(format) : formats.push(format) - 1) + 2;
  const sheets = tables.map(({ table }, t) => {
    const rows = table.row_boxes.map(() => []), merged = [], widths = table.column_boxes.map(() => 6);
    table.cells.forEach((cell, c) => {
      const from = place(cell.row, cell.column), value = valueOf(t, c);
      if (cell.column_span === 1) widths[cell.column] = Math.min(60, Math.max(widths[cell.column], ...textOf(t, c).split("\n").map((line) => line.length)));
      if (value) rows[cell.row].push('<c r="' + from + '" s="' + styleOf(value[1]) + '"><v>' + value[0] + "</v></c>");
      else rows[cell.row].push('<c r="' + from + '" s="' + (cell.is_header ? 1 : 0) + '" t="inlineStr"><is><t xml:space="preserve">' + xml(textOf(t, c)) + "</t></is></c>");
      if (cell.row_span * cell.column_span > 1) merged.push('<mergeCell ref="' + from + ":" + place(cell.row + cell.row_span - 1, cell.column + cell.column_span - 1) + '"/>');
    });
    const wide = widths.map((width, i) => '<col min="' + (i + 1) + '" max="' + (i + 1) + '" width="' + (width + 2) + '" customWidth="1"/>');
    return head + '<worksheet xmlns="' + main + '">' + (wide.length ? "<cols>" + wide.join("") + "</cols>" : "") + '<sheetData>' + rows.map((row, r) => '<row r="' + (r + 1) + '">' + row.join("") + "</row>").join("") + "</sheetData>"
      + (merged.length ? '<mergeCells count="' + merged.length + '">' + merged.join("") + "</mergeCells>" : "") + "</worksheet>";
  });
  const filled = '<fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>';
  const styles = head + '<styleSheet xmlns="' + main + '">' + (formats.length ? '<numFmts count="' + formats.length + '">' + formats.map((format, i) => '<numFmt numFmtId="' + (164 + i) + '" formatCode="' + xml(format) + '"/>').join("") + "</numFmts>" : "")
    + '<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts><fills count="2">' + filled + '</fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>'
    + '<cellXfs count="' + (formats.length + 2) + '"><xf/><xf fontId="1" applyFont="1"/>' + formats.map((_, i) => '<xf numFmtId="' + (164 + i) + '" applyNumberFormat="1"/>').join("") + "</cellXfs><cellStyles count=\"1\"><cellStyle name=\"Normal\" xfId=\"0\" builtinId=\"0\"/></cellStyles></styleSheet>";
  return zip([
    ["[Content_Types].xml", head + '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="' + types + 'sheet.main+xml"/><Override PartName="/xl/styles.xml" ContentType="' + types + 'styles+xml"/>'
      + sheets.map((_, i) => '<Override PartName="/xl/worksheets/sheet' + (i + 1) + '.xml" ContentType="' + types + 'worksheet+xml"/>').join("") + "</Types>"],
    ["_rels/.rels", head + '<Relationships xmlns="' + relations + '"><Relationship Id="r1" Type="' + office + '/officeDocument" Target="xl/workbook.xml"/></Relationships>'],
    ["xl/workbook.xml", head + '<workbook xmlns="' + main + '" xmlns:r="' + office + '"><sheets>' + names.map((name, i) => '<sheet name="' + xml(name) + '" sheetId="' + (i + 1) + '" r:id="s' + (i + 1) + '"/>').join("") + "</sheets></workbook>"],
    ["xl/_rels/workbook.xml.rels", head + '<Relationships xmlns="' + relations + '">' + sheets.map((_, i) => '<Relationship Id="s' + (i + 1) + '" Type="' + office + '/worksheet" Target="worksheets/sheet' + (i + 1) + '.xml"/>').join("") + '<Relationship Id="styles" Type="' + office + '/styles" Target="styles.xml"/></Relationships>'],
    ["xl/styles.xml", styles],
    ...sheets.map((text, i) => ["xl/worksheets/sheet" + (i + 1) + ".xml", text]),
  ]);
}

function crc32(bytes) {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let k = 0; k < 8; k++) crc = (crc >>> 1) ^ (0xedb88320 & -(crc & 1));
  }
  return (crc ^ -1) >>> 0;
}

function zip(files) {
  const parts = [], directory = [], encoder = new TextEncoder();
  let offset = 0;
  const record = (signature, numbers, more) => {
    const view = new DataView(new ArrayBuffer(4 + numbers.reduce((sum, [size]) => sum + size, 0)));
    let i = 4;
    view.setUint32(0, signature, true);
    for (const [size, value] of numbers) { size === 2 ? view.setUint16(i, value, true) : view.setUint32(i, value, true); i += size; }
    return [new Uint8Array(view.buffer), ...more];
  };
  for (const [name, text] of files) {
    const path = encoder.encode(name), data = encoder.encode(text);
    const common = [[2, 20], [2, 0x800], [2, 0], [2, 0], [2, 0x21], [4, crc32(data)], [4, data.length], [4, data.length], [2, path.length], [2, 0]];
    const entry = record(0x04034b50, common, [path, data]);
    directory.push(...record(0x02014b50, [[2, 20], ...common, [2, 0], [2, 0], [2, 0], [4, 0], [4, offset]], [path]));
    parts.push(...entry);
    offset += entry.reduce((sum, part) => sum + part.length, 0);
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  return new Blob([...parts, ...directory, ...record(0x06054b50, [[2, 0], [2, 0], [2, files.length], [2, files.length], [4, size], [4, offset], [2, 0]], [])], { type: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" });
}

function download(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  $("status").textContent = name + " saved";
}

for (const [key, text] of remembered()) {
  const [t, c] = key.split(":").map(Number);
  if (tables[t] && cellsOf(t)[c]) edits.set(key, text);
}
// The most doubtful tables first.
const ranked = tables.map((_, t) => t).sort((a, b) => weight(b) - weight(a) || a - b);
for (const [label, some] of [["Doubtful", ranked.filter(weight)], ["The others", ranked.filter((t) => !weight(t))]]) {
  if (!some.length) continue;
  const group = ranked.some(weight) ? element("optgroup", { label }, $("choice")) : $("choice");
  for (const t of some) element("option", { value: String(t) }, group);
}
$("choice").addEventListener("change", () => show(Number($("choice").value)));
$("before").addEventListener("click", () => show(at - 1));
$("after").addEventListener("click", () => show(at + 1));
$("zoom").addEventListener("click", () => zoom($("zoom").textContent === "+"));
$("cells").addEventListener("scroll", hints, { passive: true });
addEventListener("resize", () => { if (tables.length) { zoom(false); shrinkToFit(); hints(); } });
$("doubtful").addEventListener("click", () => nextDoubt(1));
$("undo").addEventListener("click", () => {
  cellsOf(at).forEach((_, c) => edits.delete(at + ":" + c));
  remembered([...edits]);
  show(at, here);
});
$("csv").addEventListener("click", () => download(new Blob([csv(at)], { type: "text/csv" }), file(at) + "-page-" + tables[at].page.page + "-table-" + tables[at].number + ".csv"));
$("xlsx").addEventListener("click", () => download(xlsx(), file(at) + ".xlsx"));
$("html").addEventListener("click", () => download(new Blob([html()], { type: "text/html" }), file(at) + ".html"));
document.addEventListener("keydown", (event) => {
  const box = boxes[here], editing = box && box.isContentEditable;
  if (editing) {
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); keep(here, true); box.focus(); }
    if (event.key === "Escape") { box.textContent = textOf(at, here); keep(here); box.focus(); }
    if (event.key === "Tab") { event.preventDefault(); keep(here); move(0, event.shiftKey ? -1 : 1); }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !tables.length) return;
  const inTable = boxes.includes(document.activeElement);
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  if (event.key === "n") nextDoubt(1);
  else if (event.key === "p") nextDoubt(-1);
  else if (event.key === "PageDown" && at < tables.length - 1) show(at + 1);
  else if (event.key === "PageUp" && at > 0) show(at - 1);
  else if (inTable && step) move(...step);
  else if (inTable && event.key === "Enter") edit(here);
  else return;
  event.preventDefault();
});
show(ranked[0] ?? 0);
