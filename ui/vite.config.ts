import { defineConfig } from "vite";

const names = { entryFileNames: "assets/[name]-[hash].js", chunkFileNames: "assets/[name]-[hash].js", assetFileNames: "assets/[name]-[hash][extname]" };

// Only the lexer of marked is used. The last lines of marked put everything else, which makes HTML, on
// one object: without these lines it is left out.
const lexerOnly = {
  name: "lexer-only",
  transform(code: string, id: string) {
    const end = /marked\.esm\.js/.test(id) ? code.search(/var \w+=new \w+;function \w+\(\w+,\w+\)\{return \w+\.parse\(/) : -1;
    const lexer = /(\w+) as Lexer\b/.exec(code);
    return end < 0 || !lexer ? null : `${code.slice(0, end)}export{${lexer[1]} as Lexer};`;
  },
};

export default defineConfig({
  base: "/",
  // The classic form of JSX is smaller than the automatic one.
  esbuild: { jsx: "transform", jsxFactory: "_h", jsxFragment: "_F", jsxInject: "import { h as _h, Fragment as _F } from 'preact'" },
  worker: { format: "es", plugins: () => [lexerOnly], rollupOptions: { output: names } },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    rollupOptions: { output: names },
  },
});
