// The page as two files that a single page of HTML can carry: no chunks, no fonts, no addresses.
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

export default defineConfig({
  plugins: [svelte({ emitCss: true })],
  build: {
    outDir: '../src/clearhead/explore/static',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: false,
    cssCodeSplit: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: 'src/main.ts',
      preserveEntrySignatures: 'exports-only',
      output: { format: 'es', entryFileNames: 'app.js', assetFileNames: 'app[extname]', codeSplitting: false },
    },
  },
});
