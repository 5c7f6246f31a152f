// Three files with fixed names, which the program takes in as they are (src/proxy/dashboard_files.cpp).
import { defineConfig } from 'vite';

export default defineConfig({
  base: '/',
  build: {
    outDir: 'dist',
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: false,
    chunkSizeWarningLimit: 300,
    rollupOptions: {
      output: {
        entryFileNames: 'dashboard.js',
        assetFileNames: 'dashboard[extname]',
      },
    },
  },
});
