// Runs an exported model with onnxruntime-web; texts, pictures and results are handled as zoo does it in Python.
//
//   import { load } from "./web/zoo.js";
//   const model = await load();
//   const vectors = await model.embed(["The cat sits outside.", "A cat is in the garden."]);
//
// page.json beside it describes the model, the tokenizer and the image processor. Shapes: T tokens, D hidden_size,
// E size of an embedding, C labels, Q queries, Y and X height and width after the processor, H and W before it.

const HERE = new URL(".", import.meta.url);
// A WebAssembly module with one 128-bit SIMD instruction, which only an engine that knows it accepts.
const SIMD = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
];

/** An error whose message is meant for the reader of the page. */
export class ZooError extends Error {
  name = "ZooError";
}

/**
 * Loads the model of the folder.
 * backend: "wasm", "webgpu", or "auto": WebGPU where the browser has it and the model runs on it, else WebAssembly.
 * progress({ file, loaded, total }) is called as bytes arrive.
 */
export async function load({ backend = "auto", progress = () => {} } = {}) {
  if (!["auto", "wasm", "webgpu"].includes(backend)) {
    throw new ZooError(`backend is “${backend}”, expected auto, wasm or webgpu`);
  }
  if (!WebAssembly.validate(new Uint8Array(SIMD))) {
    throw new ZooError("this browser has no WebAssembly SIMD, which the runtime needs: any browser since 2023 has");
  }
  const started = performance.now();
  const page = JSON.parse(new TextDecoder().decode(await bytes("page.json", () => {})));
  const model = await bytes(page.model.file, progress);
  const externalData = [];
  for (const file of page.model.data) {
    externalData.push({ path: file.split("/").pop(), data: await bytes(file, progress) });
  }
  const tokenizer = page.tokenizer ? await loadTokenizer(page.tokenizer) : null;
  const options = { model, externalData, progress };
  let session, fallback = null;
  const gpu = backend !== "wasm" && (await hasGpu(backend === "webgpu"));
  if (backend === "webgpu" && !gpu) throw new ZooError("this browser offers no WebGPU adapter: try backend=wasm");
  if (gpu) {
    try {
      session = await makeSession("webgpu", options);
    } catch (error) {
      if (backend === "webgpu") throw new ZooError(`the model does not run on WebGPU: ${error.message}`);
      fallback = error.message;
    }
  }
  session ??= await makeSession("wasm", options);
  return new Model(page, tokenizer, { ...session, fallback, seconds: (performance.now() - started) / 1000 });
}

class Model {
  constructor(page, tokenizer, { ort, session, backend, threads, fallback, seconds }) {
    Object.assign(this, { page, tokenizer, ort, session, backend, threads, fallback, seconds });
    this.lastRun = 0; // seconds
    this.queue = Promise.resolve();
  }

  /** Inputs { dims, data } by name -> outputs { dims, data } by name. One call runs at a time. */
  async run(inputs) {
    const result = this.queue.then(async () => {
      const feeds = {};
      for (const { name, type } of this.session.inputMetadata) {
        if (!(name in inputs)) throw new ZooError(`the model needs an input “${name}”, which this page does not have`);
        const { dims, data } = inputs[name];
        feeds[name] = new this.ort.Tensor(type, cast(data, type), dims);
      }
      const started = performance.now();
      const outputs = await this.session.run(feeds);
      this.lastRun = (performance.now() - started) / 1000;
      return outputs;
    });
    this.queue = result.catch(() => {});
    return result;
  }

  async runText(ids) {
    const dims = [1, ids.length];
    const same = (value) => ({ dims, data: ids.map(() => value) });
    return this.run({ input_ids: { dims, data: ids }, attention_mask: same(1), token_type_ids: same(0) });
  }

  /** Texts -> a Float32Array (E,) each. */
  async embed(texts) {
    const { pooling, normalize, truncate_dim: size, prompt, skip } = this.page.encoder;
    const vectors = [];
    for (const text of texts) {
      const { last_hidden_state: states } = await this.runText(this.tokenizer.encode(prompt + text));
      const vector = Float32Array.from(pooling.flatMap((mode) => Array.from(pool(states, mode, skip))));
      vectors.push((normalize ? unit(vector) : vector).slice(0, size ?? undefined));
    }
    return vectors;
  }

  /** A text -> [{ label, score }], best first. */
  async classify(text) {
    const { logits } = await this.runText(this.tokenizer.encode(text));
    return this.labelled(logits.data);
  }

  /** A text with mask tokens -> for each of them [{ token, score }], the likeliest first. */
  async fillMask(text, count = 5) {
    const { mask_token: mask, mask_token_id: id } = this.page.tokenizer;
    const ids = this.tokenizer.encode(text, { cut: false });
    if (!ids.includes(id)) throw new ZooError(`the text has no mask: write ${mask} where a word is wanted`);
    const { logits } = await this.runText(ids);
    const V = logits.dims[2];
    return ids.flatMap((token, t) => {
      if (token !== id) return [];
      const p = softmax(logits.data.subarray(t * V, (t + 1) * V));
      const best = Array.from(p.keys()).sort((a, b) => p[b] - p[a] || a - b).slice(0, count);
      return [best.map((i) => ({ token: this.tokenizer.decode([i]), score: p[i] }))];
    });
  }

  /** A picture (see openImage) -> [{ label, score }], best first. */
  async classifyImage(image) {
    const { logits } = await this.runImage(image);
    return this.labelled(logits.data);
  }

  /** A picture -> its objects above the threshold, [{ label, score, box: [x0, y0, x1, y1] in its pixels }], best first. */
  async detect(image, threshold = 0.5) {
    const { logits, pred_boxes: boxes } = await this.runImage(image);
    return objects(logits, boxes, image, this.page.labels, threshold);
  }

  async runImage(image) {
    const { height, width, data } = prepare(image, this.page.processor);
    const ones = new Uint8Array(height * width).fill(1);
    return this.run({
      pixel_values: { dims: [1, 3, height, width], data },
      pixel_mask: { dims: [1, height, width], data: ones },
    });
  }

  labelled(logits) {
    const scores = { softmax, sigmoid: (z) => z.map((v) => 1 / (1 + Math.exp(-v))), none: (z) => z };
    const values = scores[this.page.function](logits);
    const order = Array.from(values.keys()).sort((a, b) => values[b] - values[a] || a - b);
    return order.map((i) => ({ label: this.page.labels[i], score: values[i] }));
  }
}

// Loading.

async function bytes(file, progress) {
  let response;
  try {
    response = await fetch(new URL(file, HERE));
  } catch (error) {
    throw new ZooError(`${file} cannot be fetched: ${error.message}`);
  }
  if (!response.ok) throw new ZooError(`${file} is not there: the server answers ${response.status} for ${response.url}`);
  const total = Number(response.headers.get("content-length")) || 0;
  let loaded = 0;
  const counter = new TransformStream({
    transform(chunk, output) {
      progress({ file, loaded: (loaded += chunk.length), total });
      output.enqueue(chunk);
    },
  });
  return new Uint8Array(await new Response(response.body.pipeThrough(counter)).arrayBuffer());
}

/** True if there is a WebGPU adapter; one in software counts only where `software` is true. */
async function hasGpu(software) {
  try {
    const adapter = await navigator.gpu?.requestAdapter();
    return Boolean(adapter) && (software || !(adapter.info?.isFallbackAdapter ?? adapter.isFallbackAdapter));
  } catch {
    return false;
  }
}

async function makeSession(backend, { model, externalData, progress }) {
  const kind = backend === "webgpu" ? "ort-wasm-simd-threaded.asyncify" : "ort-wasm-simd-threaded";
  const ort = await import(backend === "webgpu" ? "./ort.webgpu.min.mjs" : "./ort.wasm.min.mjs");
  ort.env.logLevel = "error";
  ort.env.wasm.wasmPaths = { mjs: new URL(`${kind}.mjs`, HERE).href, wasm: new URL(`${kind}.wasm`, HERE).href };
  ort.env.wasm.wasmBinary = (await bytes(`${kind}.wasm`, progress)).buffer;
  ort.env.wasm.proxy = backend === "wasm"; // in a worker, so that the page stays alive
  // Threads share memory, which browsers allow where the server sends COOP and COEP headers.
  const threads = globalThis.crossOriginIsolated ? Math.min(4, Math.ceil(navigator.hardwareConcurrency / 2)) : 1;
  ort.env.wasm.numThreads = threads;
  const session = await ort.InferenceSession.create(model, { executionProviders: [backend], externalData });
  return { ort, session, backend, threads };
}

function cast(data, type) {
  if (type === "int64") return BigInt64Array.from(data, BigInt);
  if (type === "bool") return Uint8Array.from(data, Number);
  return data;
}

// Texts.

/** The tokenizer that page.json describes: the library, special tokens and truncation. */
export async function loadTokenizer(about) {
  const { Tokenizer } = await import("./tokenizers.min.mjs");
  const library = new Tokenizer(JSON.parse(new TextDecoder().decode(await bytes(about.file, () => {}))), {});
  const { prefix, suffix, max_tokens: most, truncation_side: side } = about;

  /** The ids of a text, special tokens included, cut to the model's length. */
  function encode(text, { cut = true } = {}) {
    // toLowerCase() looks at what surrounds a sigma, which Hugging Face's own tokenizers do not.
    if (about.lowers) text = text.replaceAll("Σ", "σ");
    let ids = library.encode(text, { add_special_tokens: false }).ids;
    const room = most - prefix.length - suffix.length;
    if (ids.length > room) {
      if (!cut) throw new ZooError(`the text has ${ids.length} tokens, and the model takes ${room}`);
      ids = side === "left" ? ids.slice(ids.length - room) : ids.slice(0, room);
    }
    return [...prefix, ...ids, ...suffix];
  }

  return { encode, decode: (ids) => library.decode(ids, { skip_special_tokens: false }) };
}

/** Hidden states (1, T, D) of a text, without its first `skip` tokens -> (D,). */
function pool({ dims: [, T, D], data }, mode, skip) {
  const first = mode === "lasttoken" ? T - 1 : skip, end = mode === "cls" ? skip + 1 : T;
  const weight = (t) => (mode === "weightedmean" ? t + 1 : 1);
  let by = 0;
  for (let t = first; t < end; t++) by += weight(t);
  if (mode === "max") by = 1;
  if (mode === "mean_sqrt_len_tokens") by = Math.sqrt(by);
  return Float32Array.from({ length: D }, (_, d) => {
    let total = mode === "max" ? -Infinity : 0;
    for (let t = first; t < end; t++) {
      const value = data[t * D + d];
      total = mode === "max" ? Math.max(total, value) : total + weight(t) * value;
    }
    return total / by;
  });
}

function unit(vector) {
  const length = Math.max(Math.hypot(...vector), 1e-12);
  return vector.map((value) => value / length);
}

/** The cosine of two vectors. */
export function cosine(a, b) {
  let ab = 0, aa = 0, bb = 0;
  for (let i = 0; i < a.length; i++) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return ab / Math.max(Math.sqrt(aa * bb), 1e-12);
}

function softmax(logits) {
  const z = Float64Array.from(logits);
  const most = z.reduce((a, b) => Math.max(a, b), -Infinity);
  let sum = 0;
  for (let i = 0; i < z.length; i++) sum += z[i] = Math.exp(z[i] - most);
  return z.map((value) => value / sum);
}

// Pictures.

/** A file -> { width, height, data: RGB bytes }, upright, transparency over white, colour profiles not applied. */
export async function openImage(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file, { colorSpaceConversion: "none", imageOrientation: "from-image" });
  } catch {
    throw new ZooError(`${file.name || "the file"} is not an image that this browser reads`);
  }
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  const rgba = context.getImageData(0, 0, width, height).data;
  const data = new Uint8Array(width * height * 3);
  for (let i = 0, j = 0; i < rgba.length; i += 4) {
    data[j++] = rgba[i];
    data[j++] = rgba[i + 1];
    data[j++] = rgba[i + 2];
  }
  return { width, height, data };
}

/** A picture -> { width: X, height: Y, data: Float32Array (3, Y, X) }: resized, cropped, rescaled and normalised. */
export function prepare(image, { size, resample, crop, table }) {
  let small = image;
  if (size) {
    const [height, width] = resized(size, image.height, image.width);
    if (!height || !width) throw new ZooError(`a picture of ${image.width} × ${image.height} is too narrow to be resized`);
    small = resize(image, width, height, FILTERS[resample]);
  }
  if (crop) small = cropped(small, ...crop);
  const data = new Float32Array(small.data.length), plane = data.length / 3;
  for (let i = 0; i < data.length; i++) data[(i % 3) * plane + Math.floor(i / 3)] = table[i % 3][small.data[i]];
  return { width: small.width, height: small.height, data };
}

/** [height, width] after resizing: the rules of zoo's images/sizes.py. */
function resized(size, height, width) {
  const { shortest_edge: edge, longest_edge: most } = size;
  if ("height" in size) return [size.height, size.width];
  if ("max_height" in size) {
    const scale = Math.min(size.max_height / height, size.max_width / width);
    return [Math.trunc(height * scale), Math.trunc(width * scale)];
  }
  const short = Math.min(height, width), long = Math.max(height, width);
  if (edge === undefined) return [halfToEven((most / long) * height), halfToEven((most / long) * width)];
  let small = edge, length = edge;
  if (most !== undefined) {
    if ((long / short) * edge > most) small = halfToEven((length = (most * short) / long));
    if (short === small) return [height, width];
    return width < height
      ? [Math.trunc((length * height) / width), small]
      : [small, Math.trunc((length * width) / height)];
  }
  return width <= height
    ? [Math.trunc((edge * height) / width), edge]
    : [edge, Math.trunc((edge * width) / height)];
}

function halfToEven(x) {
  const low = Math.floor(x);
  return x - low === 0.5 ? low + (low % 2) : Math.round(x);
}

// Pillow's filters by its numbers: radius in source pixels, and weight at a distance.
const sinc = (x) => (x === 0 ? 1 : Math.sin(x * Math.PI) / (x * Math.PI));
const FILTERS = {
  1: [3, (x) => (-3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0)],
  2: [1, (x) => Math.max(1 - Math.abs(x), 0)],
  3: [2, (x) => cubic(Math.abs(x))],
  4: [0.5, (x) => (-0.5 < x && x <= 0.5 ? 1 : 0)],
  5: [1, (x) => (x === 0 ? 1 : Math.abs(x) >= 1 ? 0 : sinc(x) * (0.54 + 0.46 * Math.cos(x * Math.PI)))],
};

function cubic(x) {
  const a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/**
 * Pillow 13's resize, bit by bit: a pass along the rows and one along the columns, with weights of 22 bits and bytes in
 * between. A canvas, which transformers.js resizes with, is off by up to 139 of 255, and models then find other objects.
 */
function resize({ width: W, height: H, data }, width, height, filter) {
  const acrossFirst = !(H > height && H - height > 2 * (W - width)); // before Pillow 13: always
  if (acrossFirst && width !== W) data = pass(data, H, W, width, 3, filter);
  if (height !== H) data = pass(data, 1, H, height, 3 * (acrossFirst ? width : W), filter);
  if (!acrossFirst && width !== W) data = pass(data, height, W, width, 3, filter);
  return { width, height, data };
}

/** (outer, from, inner) bytes -> (outer, to, inner). */
function pass(data, outer, from, to, inner, filter) {
  const out = new Uint8ClampedArray(outer * to * inner);
  const [reach, weight] = filter;
  const scale = from / to, stretch = Math.max(scale, 1), support = reach * stretch;
  const sums = new Int32Array(inner);
  const weights = [];
  for (let i = 0; i < to; i++) {
    const centre = (i + 0.5) * scale;
    const first = Math.max(0, Math.trunc(centre - support + 0.5));
    const end = Math.min(from, Math.trunc(centre + support + 0.5));
    const w = Float64Array.from({ length: end - first }, (_, k) => weight((k + first - centre + 0.5) * (1 / stretch)));
    const total = w.reduce((a, b) => a + b, 0);
    weights.push([first, Int32Array.from(w, (v) => Math.trunc((v / total) * (1 << 22) + (v / total < 0 ? -0.5 : 0.5)))]);
  }
  for (let o = 0; o < outer; o++) {
    for (let i = 0; i < to; i++) {
      const [first, w] = weights[i];
      sums.fill(1 << 21);
      for (let k = 0, at = (o * from + first) * inner; k < w.length; k++) {
        const one = w[k];
        for (let c = 0; c < inner; c++, at++) sums[c] += data[at] * one;
      }
      for (let c = 0, at = (o * to + i) * inner; c < inner; c++, at++) out[at] = sums[c] >> 22;
    }
  }
  return out;
}

/** The centre of the picture, black beyond its edges. */
function cropped(image, height, width) {
  const left = Math.floor((image.width - width) / 2), top = Math.floor((image.height - height) / 2);
  const data = new Uint8Array(height * width * 3);
  const from = Math.max(0, left), to = Math.min(image.width, left + width);
  for (let y = Math.max(0, top); y < Math.min(image.height, top + height); y++) {
    const row = image.data.subarray((y * image.width + from) * 3, (y * image.width + to) * 3);
    data.set(row, ((y - top) * width + from - left) * 3);
  }
  return { width, height, data };
}

// Objects.

/** Logits (1, Q, C + 1), the last for “no object”, and boxes (1, Q, 4) -> what detect gives. */
function objects(logits, boxes, { width: W, height: H }, labels, threshold) {
  const [, Q, C] = logits.dims;
  const found = [];
  for (let q = 0; q < Q; q++) {
    const scores = softmax(logits.data.subarray(q * C, (q + 1) * C)).subarray(0, C - 1);
    const best = scores.reduce((a, score, i) => (score > scores[a] ? i : a), 0);
    const score = Math.fround(scores[best]);
    const [x, y, w, h] = boxes.data.subarray(4 * q, 4 * q + 4);
    if (!Number.isFinite(score + x + y + w + h)) throw new ZooError("the model gives numbers that are not finite");
    if (score <= threshold) continue;
    const box = [(x - w / 2) * W, (y - h / 2) * H, (x + w / 2) * W, (y + h / 2) * H];
    found.push({ label: labels[best], score, box });
  }
  return found.sort((a, b) => b.score - a.score);
}
